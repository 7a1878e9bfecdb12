/** The verdict on a request that is not made: decided by the same code, with counters that are only looked at. */
import { Decider, type DeciderParts } from './decide.js'
import type { SelfCounting } from './self-counting.js'

export type Counters = Pick<DeciderParts, 'questions' | 'store' | 'now'> & {
  readonly selfCounting: SelfCounting
}

/** Decides as the gateway would now. Charges nothing, holds nothing, remembers nothing: a new one each time. */
export function lookingDecider({ questions, store, selfCounting, now }: Counters): Decider {
  return new Decider({
    questions,
    store: {
      take: asks => store.peek(asks),
      peek: asks => store.peek(asks),
      giveBack() {},
      async close() {},
    },
    selfCounting: {
      spend: (limiter, check) => selfCounting.peek(limiter, check),
      recall: (limiter, check) => selfCounting.recall(limiter, check),
    },
    now,
    onSlots() {},
    onLost() {},
  })
}
