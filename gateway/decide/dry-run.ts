/** Decides a hypothetical request by the gateway's own code, with counters that are only read. */
import { Decider, type DeciderParts } from './decide.js'

export type Counters = Pick<DeciderParts, 'questions' | 'store' | 'now' | 'denials'>

/**
 * A decider that answers as the gateway would now, from remembered refusals first. It charges nothing, takes no slots
 * and remembers no refusals. Make a new one for each request.
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
