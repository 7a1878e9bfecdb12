/**
 * A gateway without network: the compiled policy, the decider and the counters that `serve` uses, on a clock that the log
 * sets.
 */
import { Decider } from '../../gateway/decide/decide.js'
import { type DecideRequest, Questions } from '../../gateway/decide/question.js'
import { type ErrorCode, GatewayError } from '../../gateway/errors.js'
import { enter, type Walk } from '../../gateway/pipeline/enter.js'
import type { Limiter } from '../../gateway/plugin.js'
import type { Loaded } from '../../gateway/run/load.js'
import { createLimiters } from '../../gateway/run/make-plugins.js'
import type { Project, Verdict } from '../../gateway/types.js'
import { quiet } from '../config.js'
import type { LoggedProject, Traffic } from './traffic.js'
import { VirtualStore } from './virtual-store.js'

/** What became of one request. */
export type Judged =
  | { readonly result: 'admitted' | 'refused'; readonly project: Project; readonly verdict: Verdict }
  /** Answered with an error before any rule was asked. */
  | { readonly result: 'unserved'; readonly code: ErrorCode }

/** No log tells the fields of answers. */
const NO_FIELDS = { get: () => undefined }

export class Simulation {
  readonly #decider: Decider
  readonly #loaded: Loaded
  readonly #limiters: ReadonlyMap<string, Limiter<unknown>>
  readonly #store: VirtualStore
  readonly #walk: Walk
  readonly #projects: ReadonlyMap<string, Project>
  readonly #unknownProject: Loaded['config']['gateway']['unknownProject']
  #now = 0

  /** @throws {Failure} when a plugin cannot be created */
  constructor(loaded: Loaded) {
    const { config, compiled } = loaded
    this.#loaded = loaded
    const now = () => this.#now
    this.#store = new VirtualStore(now)
    const tools = { log: quiet, projects: config.projects }
    this.#limiters = createLimiters(loaded, tools)
    const limiters = new Map(
      [...this.#limiters].map(([name, limiter]) => [name, this.#store.untimed(limiter)]),
    )
    this.#decider = new Decider({
      // E-mails and flows come as hashes already, so any key will do.
      questions: new Questions(limiters, Buffer.alloc(0), quiet),
      store: this.#store,
      now,
      onSlots: () => {},
      onLost(error) {
        throw error
      },
    })
    this.#walk = compiled.walk()
    this.#projects = new Map(config.projects.map(project => [project.id, project]))
    this.#unknownProject = config.gateway.unknownProject
  }

  /** Judges requests in order of time: one that is late comes as of now. */
  async judge({ at, facts, project: logged, durationMs = 0, status }: Traffic): Promise<Judged> {
    this.#now = Math.max(this.#now, at)
    this.#store.begin(durationMs)
    if (facts === undefined) return { result: 'unserved', code: 'bad-target' }
    const { policy, identify } = this.#walk
    const entered = enter(facts, {
      policy,
      identify: logged === undefined ? identify : () => this.#projectOf(logged),
    })
    const { project, matched, refused } = entered
    if (refused !== undefined) return { result: 'unserved', code: refused.code }
    return this.#decide({ facts: entered.facts, project: project ?? identify(facts), matched }, status)
  }

  /** Gives back what plugins hold. */
  async close(): Promise<void> {
    await Promise.all([...this.#limiters.values()].map(limiter => limiter.close?.()))
    await this.#loaded.compiled.close()
  }

  async #decide(request: DecideRequest, status: number | undefined): Promise<Judged> {
    const deciding = this.#decider.decide(request)
    const verdict = deciding instanceof Promise ? await deciding : deciding
    if (verdict.settled !== undefined) await verdict.settled
    const { facts, project } = request
    if (facts.upgrade) verdict.upgraded()
    const end = () => {
      if (verdict.allowed && status !== undefined) verdict.answered(status, NO_FIELDS)
      verdict.release()
    }
    if (verdict.allowed) this.#store.atEnd(end)
    else end()
    return { result: verdict.allowed ? 'admitted' : 'refused', project, verdict }
  }

  /** As the policy knows the project by now; else as the log does. */
  #projectOf({ id, plan, environment, verified }: LoggedProject): Project {
    const known = this.#projects.get(id)
    if (known !== undefined) return { ...known, verified }
    if (this.#unknownProject === 'reject') throw new GatewayError('unknown-project')
    const isByHost = id.startsWith('host:')
    return {
      id,
      verified,
      plan: isByHost ? this.#unknownProject : (plan ?? this.#unknownProject),
      environment: isByHost ? 'production' : (environment ?? 'production'),
    }
  }
}
