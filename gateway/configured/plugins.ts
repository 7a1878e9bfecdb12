/**
 * Creates the identifiers, observers and limiters of a configuration; a plugin that throws while creating one is
 * reported as a problem.
 */
import { dirname } from 'node:path'
import { fileBeside } from '../../config/files.js'
import { type Config, problemAt } from '../../config/load.js'
import { formatProblem, type Path, type Problem } from '../../config/problem.js'
import { columnOfUnknown } from '../../config/words/words.js'
import { Failure, SettingsFault } from '../errors.js'
import { type AskedIdentifier, contained } from '../identify/identify.js'
import { boundedLog } from '../observe/log-limits.js'
import type { Limiter, Observer, Tools } from '../plugin.js'
import type { PluginSet } from '../plugins.js'
import type { Log } from '../types.js'
import { tryDemands } from './first-demands.js'
import type { Configuration } from './load.js'
import { messageOf } from './third-party/shape.js'
import { normalPrefix } from './upstream-readings.js'

/** What plugins have created; lives as long as its configuration. */
export interface Made {
  /** In the order in which they are asked. */
  readonly identifiers: readonly AskedIdentifier[]
  /** Calls all observers. Does not throw. */
  readonly observer: Observer
  /** The configuration comes into force. */
  start(): void
  /** Releases what they hold. */
  close(): Promise<void>
}

/** The tools that are passed to the plugins of a configuration. */
export function toolsOf({ projects, planWords, gateway, gatewayFile }: Config, log: Log): Tools {
  const unknown = columnOfUnknown(gateway.unknownProject)
  const folder = dirname(gatewayFile)
  const apiKeys = gateway.apiKeys === undefined ? undefined : fileBeside(gatewayFile, gateway.apiKeys)
  return { log, projects, ...planWords, folder, apiKeys, unknown }
}

/** Creates what `identify` and `observe` of gateway.yaml list. `isFinal` if other settings alone can mend the problems. */
export function makePlugins(
  config: Config,
  plugins: PluginSet,
  log: Log,
): Made | { readonly problems: Problem[]; readonly isFinal: boolean } {
  const { gateway, projects } = config
  const known = projects.map(one => ({ ...one, paths: one.paths.map(normalPrefix) }))
  const tools: Tools = { ...toolsOf(config, log), projects: known }
  const faultLog = boundedLog(log)
  const problems: Problem[] = []
  let isFinal = true
  const attempt = <T>(name: string, path: Path, create: () => T): T[] => {
    try {
      return [create()]
    } catch (error) {
      // Plugins read files of their own.
      isFinal &&= error instanceof SettingsFault
      problems.push(problemOf(config, name, path, error))
      return []
    }
  }
  const identifiers = gateway.identify.flatMap(({ plugin: name, ...settings }, i) =>
    attempt(name, ['identify', i], () => {
      const { create, verifies, listedOnly, challenge, strips } = named(plugins.identify, name)
      const about = {
        ...{ name, verifies, listedOnly: listedOnly?.(settings, tools) },
        ...{ challenge: challenge?.(settings), strips: strips?.(settings) },
      }
      return contained(create(settings, tools), about, faultLog)
    }),
  )
  const observers = gateway.observe.flatMap(({ plugin: name, ...settings }, i) =>
    attempt(name, ['observe', i], () => {
      return { name, observer: named(plugins.observe, name).create(settings, tools) }
    }),
  )
  const made = {
    identifiers,
    observer: observeAll(observers, faultLog),
    start() {
      for (const identifier of identifiers) identifier.start()
    },
    async close() {
      const all = [...identifiers, ...observers.map(one => one.observer)]
      await Promise.all(all.map(one => one.close?.()))
    },
  }
  if (problems.length === 0) return made
  closeAll([made])
  return { problems, isFinal }
}

/** The limiters by their kind of policy. Throws a Failure that lists the plugins whose `create` threw. */
export function createLimiters(loaded: Configuration, tools: Tools): Map<string, Limiter<unknown>> {
  const { limiters, problems } = makeLimiters(loaded, tools)
  if (problems.length > 0) throw new Failure(problems.map(formatProblem).join('\n'))
  return limiters
}

/**
 * The problems that `createLimiters`, and then the first request under each rule, would meet. What was created for this
 * is closed again.
 */
export function tryLimiters(loaded: Configuration, log: Log): Problem[] {
  const { limiters, problems } = makeLimiters(loaded, toolsOf(loaded.config, log))
  if (problems.length > 0) return problems
  const faults = tryDemands(loaded, limiters)
  closeAll(limiters.values())
  return faults
}

function makeLimiters(
  { config, plugins }: Configuration,
  tools: Tools,
): { limiters: Map<string, Limiter<unknown>>; problems: Problem[] } {
  const limiters = new Map<string, Limiter<unknown>>()
  const problems: Problem[] = []
  for (const plugin of plugins.limit) {
    try {
      limiters.set(plugin.name, plugin.create(tools))
    } catch (error) {
      problems.push(problemOf(config, plugin.name, ['plugins'], error))
    }
  }
  if (problems.length > 0) closeAll(limiters.values())
  return { limiters, problems }
}

/** Closes what is not used after all. For third-party plugins, checked.ts logs failures. */
function closeAll(made: Iterable<{ close?(): Promise<void> }>): void {
  for (const one of made) one.close?.().catch(() => {})
}

function named<P extends { readonly name: string }>(plugins: readonly P[], name: string): P {
  const plugin = plugins.find(one => one.name === name)
  if (plugin === undefined) throw new Error(`no plugin is called "${name}"`)
  return plugin
}

function problemOf(config: Config, name: string, path: Path, error: unknown): Problem {
  const message = `The plugin "${name}" could not be created: ${messageOf(error)}`
  return problemAt(config, config.gatewayFile, path, message)
}

/** An observer and the name of its plugin. */
interface NamedObserver {
  readonly name: string
  readonly observer: Observer
}

/** Calls each observer; one that throws is logged and does not affect the others. */
function observeAll(observers: readonly NamedObserver[], log: Log): Observer {
  return {
    finished(event) {
      for (const { name, observer } of observers) {
        try {
          observer.finished(event)
        } catch (error) {
          log.warn({ err: error, plugin: name }, 'an observer failed')
        }
      }
    },
  }
}
