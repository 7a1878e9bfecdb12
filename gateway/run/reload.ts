/**
 * Activates a changed configuration while requests run; an invalid one is refused, and the last valid one stays in
 * force.
 */
import { isDeepStrictEqual } from 'node:util'
import { problemAt } from '../../config/load.js'
import { hasChanged, markOf, type Sources } from '../../config/marks.js'
import { countProblems, formatProblem, listed, type Problem } from '../../config/problem.js'
import type { Gateway } from '../../config/schema/gateway.js'
import type { ReloadResult } from '../admin/reload.js'
import type { Configuration, InvalidConfiguration } from '../configured/load.js'
import { isOutdated } from '../configured/third-party/load.js'
import { Failure } from '../errors.js'
import { movedCounters } from '../explain/difference/sentences.js'
import type { Log } from '../types.js'
import { ReloadRetries } from './reload-retries.js'

/** What caused a reload; `retry`: the last one was refused. */
export type Trigger = 'SIGHUP' | 'watch' | 'admin' | 'retry'

export type Reloaded = ReloadResult<Problem>

/** The last reload, as `/state` reports it. */
export type LastReload = Reloaded & { readonly trigger: Trigger; readonly at: Date }

/** A former configuration, and when its policy was replaced by another one. */
export interface Former {
  readonly loaded: Configuration
  readonly until: Date
}

export interface ReloaderOptions {
  /** The configuration this process was started with. */
  readonly first: Configuration
  load(): Promise<Configuration | InvalidConfiguration>
  /** Activates it in one step; rejects, without having changed anything, when that fails. */
  replace(loaded: Configuration): Promise<void>
  /** Called with each result, but not again with the same refusal when that is tried again. */
  onResult(reloaded: Reloaded): void
  readonly log: Log
}

/** An embedded service that a configuration needs cannot start. */
export class ServiceFailure extends Failure {
  /** Key of the upstream that needs it. */
  readonly upstream: string

  constructor(upstream: string, cause: Error) {
    super(cause.message, { cause })
    this.upstream = upstream
  }
}

/** Sentences about counters in one line of the log. */
const MOST_COUNTERS = 20

/** Settings that only a restart can change. */
const FIXED: Readonly<Record<string, (settings: Gateway) => unknown>> = {
  listen: ({ listen }) => listen,
  admin: ({ admin }) => admin,
  redis: ({ redis }) => redis,
  'store.deadline': ({ store }) => store.deadline,
  'store.instances': ({ store }) => store.instances,
  tracing: ({ tracing }) => tracing,
  plugins: ({ plugins }) => plugins,
}

/** Problems that are listed one by one; a truncated file may have thousands. */
const MOST_PROBLEMS = 100

export class Reloader {
  readonly #options: ReloaderOptions
  #inForce: Configuration
  #former: Former | undefined
  #sources: Sources
  #last: LastReload | undefined
  #needsRestart: readonly string[] = []
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<Reloaded> | undefined
  /** A refusal may have other causes than `sources`: a file of keys, a worker, a service. */
  readonly #retries = new ReloadRetries(() => this.#retry())

  constructor(options: ReloaderOptions) {
    this.#options = options
    this.#inForce = options.first
    this.#sources = options.first.sources
  }

  /** The files read by the last load, valid or not. */
  get sources(): Sources {
    return this.#sources
  }

  get last(): LastReload | undefined {
    return this.#last
  }

  /** What was in force until the policy last changed; undefined if it never has. */
  get former(): Former | undefined {
    return this.#former
  }

  get needsRestart(): readonly string[] {
    return this.#needsRestart
  }

  /** Resolves when no reload is in progress. Never rejects. */
  async idle(): Promise<void> {
    let seen: unknown
    do {
      seen = this.#running
      await seen
    } while (seen !== this.#running)
  }

  /**
   * Never rejects. Reloads run one at a time; all requests made meanwhile share one further reload, which reads the
   * files again.
   */
  reload(trigger: Trigger): Promise<Reloaded> {
    if (this.#next !== undefined) return this.#next
    const next = this.#running.then(() => {
      this.#next = undefined
      return this.#run(trigger)
    })
    this.#next = next
    this.#running = next
    return next
  }

  /** A refused reload is not tried again any more. */
  close(): void {
    this.#retries.close()
  }

  #retry(): void {
    // Files that have changed may not be completely written: the watch reads them when they are.
    if (hasChanged(this.#sources)) this.#retries.schedule()
    else void this.reload('retry')
  }

  async #run(trigger: Trigger): Promise<Reloaded> {
    const before = this.#inForce
    const { reloaded, isFinal } = await this.#attempt()
    const isRefused = reloaded.result === 'refused'
    if (isFinal || trigger !== 'retry') this.#retries.reset()
    if (!isFinal) this.#retries.schedule()
    if (trigger === 'retry' && isRefused && this.#isKnown(reloaded)) return reloaded
    this.#last = { ...reloaded, trigger, at: new Date() }
    this.#logResult(reloaded, trigger, before)
    this.#options.onResult(reloaded)
    return reloaded
  }

  /** True if the last reload was refused for the same problems. */
  #isKnown(reloaded: Reloaded): boolean {
    const { trigger, at, ...known } = this.#last ?? {}
    return isDeepStrictEqual(known, reloaded)
  }

  /** `isFinal`: to try again would give the same, until `sources` change. */
  async #attempt(): Promise<{ readonly reloaded: Reloaded; readonly isFinal: boolean }> {
    const loaded = await this.#load()
    this.#sources = new Map([...certificateSources(this.#options.first), ...loaded.sources])
    if ('problems' in loaded) {
      return { reloaded: this.#refused(loaded.problems), isFinal: loaded.isFinal === true }
    }
    try {
      await this.#options.replace(loaded)
    } catch (error) {
      await loaded.compiled
        .close()
        .catch(cause => this.#options.log.error({ err: cause }, 'a plugin did not close'))
      return { reloaded: this.#refused([problemOf(error as Error, loaded)]), isFinal: false }
    }
    if (loaded.compiled.policy.revision !== this.#inForce.compiled.policy.revision) {
      this.#former = { loaded: this.#inForce, until: new Date() }
    }
    this.#inForce = loaded
    const needsRestart = changedForGood(this.#options.first, loaded)
    this.#needsRestart = needsRestart
    const { revision } = loaded.compiled.policy
    return { reloaded: { result: 'loaded', revision, needsRestart }, isFinal: true }
  }

  #refused(problems: readonly Problem[]): Reloaded {
    const { revision } = this.#inForce.compiled.policy
    const shown = problems.slice(0, MOST_PROBLEMS)
    return { result: 'refused', revision, problems: shown, problemCount: problems.length }
  }

  /** No failure here may end a process that serves requests. */
  async #load(): Promise<Configuration | InvalidConfiguration> {
    try {
      return await this.#options.load()
    } catch (error) {
      this.#options.log.error({ err: error }, 'a configuration could not be loaded')
      return { problems: [problemOf(error as Error, this.#inForce)], sources: marksOf(this.#sources.keys()) }
    }
  }

  #logResult(reloaded: Reloaded, trigger: Trigger, before: Configuration): void {
    const { log } = this.#options
    const { revision } = reloaded
    if (reloaded.result === 'refused') {
      const message = `Configuration refused for ${countProblems(reloaded.problemCount)}: ${revision} stays in force`
      log.error({ trigger, revision, problems: reloaded.problems.map(formatProblem) }, message)
      return
    }
    const { needsRestart } = reloaded
    const counters = movedCounters(before, this.#inForce, MOST_COUNTERS)
    const shown = {
      trigger,
      revision,
      before: before.compiled.policy.revision,
      ...(counters.length > 0 && { counters }),
    }
    if (needsRestart.length === 0) log.info(shown, 'Configuration reloaded')
    else {
      const message = `Configuration reloaded, except for ${listed(needsRestart, 'and')}: that needs a restart`
      log.warn({ ...shown, needsRestart }, message)
    }
  }
}

/** The files of the certificate in force, which the configuration may no longer name: they are still renewed. */
function certificateSources({ config }: Configuration): Sources {
  const { cert, key, clientCa } = config.gateway.listen.tls ?? {}
  return marksOf([cert, key, clientCa].filter(file => file !== undefined))
}

function marksOf(paths: Iterable<string>): Sources {
  return new Map([...paths].map(path => [path, markOf(path)]))
}

/** Changes that need a restart: fixed settings, and the code of plugins. */
function changedForGood(
  { config: { gateway: started }, plugins }: Configuration,
  { config }: Configuration,
): string[] {
  const changed = Object.entries(FIXED).filter(
    ([name, of]) =>
      !isDeepStrictEqual(of(started), of(config.gateway)) || (name === 'plugins' && isOutdated(plugins)),
  )
  return changed.map(([name]) => name)
}

function problemOf(error: Error, { config }: Configuration): Problem {
  const path = error instanceof ServiceFailure ? ['upstreams', error.upstream, 'embedded'] : []
  return problemAt(config, config.gatewayFile, path, error.message)
}
