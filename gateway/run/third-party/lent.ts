/**
 * What a third party's plugin is handed belongs to the whole gateway: other rooms, plugins and requests read the same objects.
 * So it is handed over frozen, and a plugin that writes into it meets a TypeError, which is contained as all it throws.
 */
import type { KeyCounter, LimitTools, Tools } from '../../plugin.js'
import type { Finished, Log } from '../../types.js'
import { assertCountable } from './shape.js'

/** The same value, frozen as deep as its data goes. Costs nothing once it is. */
export function lent<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const part of Object.values(value)) lent(part)
  return value
}

/** The tools of one plugin alone: whatever it hangs in the place of one, nobody else meets it. */
export function lentTools({ log, projects }: Tools): Tools {
  return { log: lentLog(log), projects: lent(projects) }
}

export function lentLimitTools(tools: LimitTools): LimitTools {
  return { ...lentTools(tools), counter: lentCounter(tools.counter) }
}

/** The verdict goes on to hold slots, and the lists in it are its own. */
export function lentEvent(event: Finished): Finished {
  const { verdict } = event
  return lent({
    ...event,
    verdict: verdict && {
      allowed: verdict.allowed,
      outcomes: [...verdict.outcomes],
      reportOnly: [...verdict.reportOnly],
    },
  })
}

function lentLog(log: Log): Log {
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  }
}

function lentCounter(counter: KeyCounter): KeyCounter {
  return {
    spend(key, limit, onStoreError, cost) {
      assertCountable(key, limit, cost)
      return counter.spend(key, limit, onStoreError, cost)
    },
    peek(key, limit, onStoreError, cost) {
      assertCountable(key, limit, cost)
      return counter.peek(key, limit, onStoreError, cost)
    },
    recall(key, limit) {
      assertCountable(key, limit)
      return counter.recall(key, limit)
    },
  }
}
