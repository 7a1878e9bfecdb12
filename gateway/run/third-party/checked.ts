/**
 * A third party's plugin behind a guard: what it answers is looked at, and what is no answer is thrown as a TypeError, which
 * the rooms handle as they handle whatever a plugin throws.
 */

import { boundedLog } from '../../observe/bounded-log.js'
import type {
  Identifier,
  IdentifyPlugin,
  Limiter,
  LimitTools,
  ObservePlugin,
  Observer,
  Plugin,
  Ruling,
  SelfCountingLimiter,
  Tools,
} from '../../plugin.js'
import type { Facts, Log, Rule } from '../../types.js'
import { lent, lentEvent, lentLimitTools, lentTools } from './lent.js'
import { demandFrom, ignore, isThenable, projectFrom, rulingFrom, withFunctions } from './shape.js'

/** How long a plugin may take to give back what it holds. */
const CLOSE_MS = 1000

/** The same plugin, its answers checked, and what it is handed out of its reach (lent.ts). */
export function checked(plugin: Plugin): Plugin {
  const { name, schema } = plugin
  if (plugin.kind === 'limit') {
    const limitsReads = plugin.limitsReads === true
    const create = (tools: LimitTools) => checkedLimiter(plugin.create(lentLimitTools(tools)), name, tools)
    return { name, kind: plugin.kind, schema, limitsReads, create }
  }
  if (plugin.kind === 'identify') {
    const create: IdentifyPlugin['create'] = (config, tools) =>
      checkedIdentifier(plugin.create(lent(config), lentTools(tools)), name, tools)
    return { name, kind: plugin.kind, schema, create }
  }
  const create: ObservePlugin['create'] = (config, tools) =>
    checkedObserver(plugin.create(lent(config), lentTools(tools)), name, tools)
  return { name, kind: plugin.kind, schema, create }
}

function checkedIdentifier(made: unknown, name: string, tools: Tools): Identifier {
  const identifier: Identifier = withFunctions(made, 'create()', 'identify')
  return {
    identify: facts => projectFrom(atOnce(identifier.identify(lent(facts)), 'identify()')),
    close: closing(identifier, name, tools),
  }
}

function checkedLimiter(made: unknown, name: string, tools: Tools): Limiter<unknown> {
  const counts = typeof made === 'object' && made !== null && 'spend' in made
  const limiter: Limiter<unknown> = withFunctions(made, 'create()', counts ? 'spend' : 'demand')
  const common = {
    applies: (rule: Rule, facts: Facts) =>
      atOnce(limiter.applies?.(lent(rule), lent(facts)), 'applies()') !== false,
    close: closing(limiter, name, tools),
  }
  if (!('spend' in limiter)) {
    return { ...common, demand: check => lent(demandFrom(atOnce(limiter.demand(lent(check)), 'demand()'))) }
  }
  return { ...common, ...checkedCounting(limiter, boundedLog(tools.log), name) }
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
    spend: check => awaited(limiter.spend(lent(check))),
    ...(typeof limiter.peek === 'function' && { peek: check => awaited(limiter.peek?.(lent(check))) }),
    recall(check) {
      const answer: unknown = atOnce(limiter.recall?.(lent(check)), 'recall()')
      const ruling = answer === undefined || answer === null ? undefined : rulingOf(answer)
      return ruling === 'unavailable' ? undefined : ruling
    },
  }
}

/** What ends a ruling is called when nobody can handle an error any more. */
function withSafeEnding({ giveBack, release, ...ruling }: Ruling, log: Log, plugin: string): Ruling {
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
    ...ruling,
    ...(giveBack && { giveBack: safely(giveBack) }),
    ...(release && { release: safely(release) }),
  }
}

function checkedObserver(made: unknown, name: string, tools: Tools): Observer {
  const observer: Observer = withFunctions(made, 'create()', 'finished')
  const log = boundedLog(tools.log)
  const failed = (error: unknown) => log.warn({ err: error, plugin: name }, 'a plugin failed')
  return {
    finished(event) {
      const answer: unknown = observer.finished(lentEvent(event))
      if (isThenable(answer)) Promise.resolve(answer).catch(failed)
    },
    close: closing(observer, name, tools),
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
