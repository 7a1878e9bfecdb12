/**
 * Contains a third-party plugin. Plugins are trusted code, but an invalid return value becomes a TypeError, which
 * callers handle like anything else a plugin throws.
 */

import { boundedLog } from '../../observe/log-limits.js'
import type {
  Identifier,
  IdentifyPlugin,
  Limiter,
  ObservePlugin,
  Observer,
  Plugin,
  Tools,
} from '../../plugin.js'
import {
  answerFrom,
  challengeFrom,
  demandFrom,
  headerFrom,
  ignore,
  isThenable,
  WrongAnswer,
  withFunctions,
} from './shape.js'

const CLOSE_MS = 1000

/** The same plugin, with its return values checked. */
export function checked(plugin: Plugin): Plugin {
  const { name, schema } = plugin
  if (plugin.kind === 'limit') {
    const limitsReads = plugin.limitsReads === true
    const create = (tools: Tools) => checkedLimiter(plugin.create(tools), name, tools)
    return { name, kind: plugin.kind, schema, limitsReads, create }
  }
  if (plugin.kind === 'identify') {
    const create: IdentifyPlugin['create'] = (config, tools) =>
      checkedIdentifier(plugin.create(config, tools), name, tools)
    const flags = { verifies: plugin.verifies === true, givesScopes: plugin.givesScopes === true }
    const challenge: IdentifyPlugin['challenge'] = config => challengeFrom(plugin.challenge?.(config))
    const strips: IdentifyPlugin['strips'] = config => headerFrom(plugin.strips?.(config))
    return {
      name,
      kind: plugin.kind,
      schema,
      ...flags,
      ...(plugin.challenge && { challenge }),
      ...(plugin.listedOnly && { listedOnly: plugin.listedOnly }),
      strips,
      create,
    }
  }
  const create: ObservePlugin['create'] = (config, tools) =>
    checkedObserver(plugin.create(config, tools), name, tools)
  return { name, kind: plugin.kind, schema, create }
}

function checkedIdentifier(made: unknown, name: string, tools: Tools): Identifier {
  const identifier: Identifier = withFunctions(made, 'create()', 'identify')
  return {
    identify(facts, explains) {
      const said: unknown = identifier.identify(facts, explains)
      if (!isThenable(said)) return answerFrom(said, tools)
      return Promise.resolve(said).then(late => answerFrom(late, tools))
    },
    start: () => identifier.start?.(),
    close: closing(identifier, name, tools),
  }
}

function checkedLimiter(made: unknown, name: string, tools: Tools): Limiter<unknown> {
  const limiter: Limiter<unknown> = withFunctions(made, 'create()', 'demand')
  return {
    applies: (rule, facts) => atOnce(limiter.applies?.(rule, facts), 'applies()') !== false,
    demand: check => demandFrom(atOnce(limiter.demand(check), 'demand()')),
    close: closing(limiter, name, tools),
  }
}

function checkedObserver(made: unknown, name: string, tools: Tools): Observer {
  const observer: Observer = withFunctions(made, 'create()', 'finished')
  const log = boundedLog(tools.log)
  const failed = (error: unknown) => log.warn({ err: error, plugin: name }, 'a plugin failed')
  return {
    finished(event) {
      const answer: unknown = observer.finished(event)
      if (isThenable(answer)) Promise.resolve(answer).catch(failed)
    },
    close: closing(observer, name, tools),
  }
}

/** The value, unless it is a promise, which nothing here could wait for. */
function atOnce<T>(answer: T, call: string): T {
  if (!isThenable(answer)) return answer
  ignore(answer)
  throw new WrongAnswer(`${call} must answer at once, but it returned a promise`)
}

/** Resolves within a second whatever the plugin does; never rejects. */
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
