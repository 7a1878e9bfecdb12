/** The verdict on a hypothetical request, decided by the same code, with counters that are only read. */
import { Decider, type DeciderParts } from './decide.js'

export type Counters = Pick<DeciderParts, 'questions' | 'store' | 'now' | 'denials'>

/**
 * Decides as the gateway would now, which refuses by what it remembers before it asks. Charges nothing, holds nothing,
 * remembers nothing: a new one each time.
 */
export function lookingDecider({ questions, store, now, denials }: Counters): Decider {
  return new Decider({
    questions,
    store: {
      take: asks => store.peek(asks),
      rides: () => true,
      peek: asks => store.peek(asks),
      giveBack() {},
      charge() {},
      async close() {},
    },
    now,
    denials: {
      empty: denials?.empty ?? true,
      recall: ask => denials?.recall(ask),
      remember() {},
      forget() {},
    },
    onSlots() {},
    onLost() {},
  })
}
