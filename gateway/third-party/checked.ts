/**
 * A third party's plugin behind a guard: what it answers is looked at, and what is no answer is thrown as a TypeError, which
 * the rooms handle as they handle whatever a plugin throws (design section 3).
 */

import { boundedLog } from '../observe/bounded-log.js'
import type {
  Identifier,
  IdentifyPlugin,
  Limiter,
  LimitPlugin,
  ObservePlugin,
  Observer,
  Plugin,
  Ruling,
  SelfCountingLimiter,
  Tools,
} from '../plugin.js'
import type { Log } from '../types.js'
import { demandFrom, ignore, isThenable, projectFrom, rulingFrom, withFunctions } from './shape.js'

/** How long a plugin may take to give back what it holds. */
const CLOSE_MS = 1000

/** The same plugin, its answers checked. */
export function checked(plugin: Plugin): Plugin {
  if (plugin.kind === 'identify') return checkedIdentify(plugin)
  return plugin.kind === 'limit' ? checkedLimit(plugin) : checkedObserve(plugin)
}

function checkedIdentify({ name, kind, schema, ...plugin }: IdentifyPlugin): IdentifyPlugin {
  return {
    name,
    kind,
    schema,
    create(config, tools) {
      const identifier: Identifier = withFunctions(plugin.create(config, tools), 'create()', 'identify')
      return {
        identify: facts => projectFrom(atOnce(identifier.identify(facts), 'identify()')),
        close: closing(identifier, name, tools),
      }
    },
  }
}

function checkedLimit({ name, kind, schema, limitsReads, ...plugin }: LimitPlugin): LimitPlugin {
  return {
    name,
    kind,
    schema,
    limitsReads: limitsReads === true,
    create(tools) {
      const made: unknown = plugin.create(tools)
      const counts = typeof made === 'object' && made !== null && 'spend' in made
      const limiter: Limiter<unknown> = withFunctions(made, 'create()', counts ? 'spend' : 'demand')
      const common = {
        applies: (...asked: Parameters<NonNullable<typeof limiter.applies>>) =>
          atOnce(limiter.applies?.(...asked), 'applies()') !== false,
        close: closing(limiter, name, tools),
      }
      if (!('spend' in limiter)) {
        return { ...common, demand: check => demandFrom(atOnce(limiter.demand(check), 'demand()')) }
      }
      return { ...common, ...checkedCounting(limiter, boundedLog(tools.log), name) }
    },
  }
}

function checkedCounting(
  limiter: SelfCountingLimiter<unknown>,
  log: Log,
  plugin: string,
): Pick<SelfCountingLimiter<unknown>, 'spend' | 'peek' | 'recall'> {
  const rulingOf = (answer: unknown) => {
    const ruling = rulingFrom(answer)
    return ruling === 'unavailable' ? ruling : withSafeEnding(ruling, log, plugin)
  }
  const awaited = (answer: unknown) =>
    isThenable(answer) ? Promise.resolve(answer).then(rulingOf) : rulingOf(answer)
  return {
    spend: check => awaited(limiter.spend(check)),
    ...(typeof limiter.peek === 'function' && { peek: check => awaited(limiter.peek?.(check)) }),
    recall(check) {
      const answer: unknown = atOnce(limiter.recall?.(check), 'recall()')
      const ruling = answer === undefined || answer === null ? undefined : rulingOf(answer)
      return ruling === 'unavailable' ? undefined : ruling
    },
  }
}

/** What ends a ruling is called when nobody can handle an error any more. */
function withSafeEnding(ruling: Ruling, log: Log, plugin: string): Ruling {
  const { giveBack, release } = ruling
  const safely = (call: () => unknown) => () => {
    const failed = (error: unknown) =>
      log.warn({ err: error, plugin }, 'a plugin did not take back what it had granted')
    try {
      const ended = call()
      if (isThenable(ended)) Promise.resolve(ended).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
  return {
    granted: ruling.granted,
    store: ruling.store,
    readings: ruling.readings,
    ...(giveBack && { giveBack: safely(() => giveBack.call(ruling)) }),
    ...(release && { release: safely(() => release.call(ruling)) }),
  }
}

function checkedObserve({ name, kind, schema, ...plugin }: ObservePlugin): ObservePlugin {
  return {
    name,
    kind,
    schema,
    create(config, tools) {
      const observer: Observer = withFunctions(plugin.create(config, tools), 'create()', 'finished')
      const log = boundedLog(tools.log)
      const failed = (error: unknown) => log.warn({ err: error, plugin: name }, 'a plugin failed')
      return {
        finished(event) {
          const answer: unknown = observer.finished(event)
          if (isThenable(answer)) Promise.resolve(answer).catch(failed)
        },
        close: closing(observer, name, tools),
      }
    },
  }
}

/** The answer, unless it is a promise where nobody waits for one. */
function atOnce<T>(answer: T, call: string): T {
  if (!isThenable(answer)) return answer
  ignore(answer)
  throw new TypeError(`${call} must answer at once, but it returned a promise`)
}

/** Ends within a second whatever the plugin does, and never rejects. */
function closing(held: { close?(): Promise<void> }, plugin: string, { log }: Tools): () => Promise<void> {
  return () =>
    new Promise(resolve => {
      const failed = (error: unknown) => {
        log.warn({ err: error, plugin }, 'a plugin did not close')
        resolve()
      }
      const timer = setTimeout(() => failed(new Error('it was still closing after 1 s')), CLOSE_MS)
      const closed = (async () => held.close?.())()
      closed.then(() => resolve(), failed).finally(() => clearTimeout(timer))
    })
}
