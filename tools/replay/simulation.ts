/**
 * A gateway without a network: the compiled policy, the decider and the counters that `serve` uses, on a clock set by
 * the log.
 */
import { isUnknownCaller, type PlanWords } from '../../config/words/words.js'
import type { Configuration } from '../../gateway/configured/load.js'
import { createLimiters, toolsOf } from '../../gateway/configured/plugins.js'
import { Decider } from '../../gateway/decide/decide.js'
import { type DecideRequest, Questions } from '../../gateway/decide/question.js'
import type { ErrorCode } from '../../gateway/errors.js'
import type { Caller } from '../../gateway/identify/identify.js'
import { UnknownHosts, unknownCallers } from '../../gateway/identify/unknown.js'
import { isDenied, judgementWith } from '../../gateway/pipeline/access.js'
import { enter, type Walk } from '../../gateway/pipeline/enter.js'
import type { Limiter } from '../../gateway/plugin.js'
import { Access, type Ruling } from '../../gateway/policy/access.js'
import type { Facts, Project } from '../../gateway/types.js'
import type { Judgement, Verdict } from '../../gateway/verdict.js'
import { quiet } from '../config.js'
import type { LoggedProject, Traffic } from './traffic.js'
import { VirtualStore } from './virtual-store.js'

/** The result of one request. */
export type Judged =
  | {
      readonly result: 'admitted' | 'refused'
      readonly project: Pick<Project, 'id'>
      readonly verdict: Judgement & Pick<Verdict, 'holdsSlot'>
    }
  /** Answered with an error before any rule was asked. */
  | { readonly result: 'unserved'; readonly code: ErrorCode }

/** Denied before its project was identified. */
const NOBODY = { id: 'nobody' }
/** Logs do not record the fields of responses. */
const NO_FIELDS = { get: () => undefined }

export class Simulation {
  readonly #decider: Decider
  readonly #loaded: Configuration
  readonly #limiters: ReadonlyMap<string, Limiter<unknown>>
  readonly #store = new VirtualStore()
  readonly #walk: Walk
  readonly #projects: ReadonlyMap<string, Project>
  readonly #planWords: PlanWords
  readonly #scopes: readonly string[]
  /** Whom unknown callers count for; undefined when they are rejected. */
  readonly #unknownCaller: ReturnType<typeof unknownCallers>

  /** @throws {Failure} when a plugin cannot be created */
  constructor(loaded: Configuration) {
    const { config, compiled } = loaded
    this.#loaded = loaded
    this.#limiters = createLimiters(loaded, toolsOf(config, quiet))
    const limiters = new Map(
      [...this.#limiters].map(([name, limiter]) => [name, this.#store.untimed(limiter)]),
    )
    this.#decider = new Decider({
      // E-mail addresses and flow ids are hashed already, so any secret will do.
      questions: new Questions(limiters, Buffer.alloc(0), quiet),
      store: this.#store,
      now: this.#store.now,
      onSlots: () => {},
      onLost(error) {
        throw error
      },
    })
    this.#walk = compiled.walk(undefined, new Access(compiled.access, undefined, this.#store.now))
    this.#projects = new Map(config.projects.map(project => [project.id, project]))
    this.#planWords = config.planWords
    this.#scopes = config.gateway.routes.flatMap(({ scopes }) => scopes)
    this.#unknownCaller = unknownCallers(config.gateway.unknownProject, new UnknownHosts())
  }

  /** Judges requests in order of time; a late one is judged at the current time. */
  async judge({ at, facts, project: logged, calls, durationMs = 0, status }: Traffic): Promise<Judged> {
    this.#store.begin(at, durationMs)
    if (facts === undefined) return { result: 'unserved', code: 'bad-target' }
    const { identify } = this.#walk
    const entered = await enter(facts, {
      ...this.#walk,
      identify: logged === undefined ? identify : () => this.#callerOf(logged, facts),
    })
    const { project, matched, refused, ruling } = entered
    if (isDenied(ruling)) {
      const verdict = judgementWith(ruling, undefined, entered) as Judgement
      return { result: 'refused', project: project ?? NOBODY, verdict: { ...verdict, holdsSlot: false } }
    }
    if (refused !== undefined) return { result: 'unserved', code: refused.code }
    if (project === undefined) return { result: 'unserved', code: 'unknown-project' }
    const request = { facts: entered.facts, project, matched, calls }
    return this.#decide(request, ruling, status)
  }

  /** Releases what plugins hold. */
  async close(): Promise<void> {
    await Promise.all([...this.#limiters.values()].map(limiter => limiter.close?.()))
    await this.#loaded.compiled.close()
  }

  async #decide(
    request: DecideRequest,
    ruling: Ruling | undefined,
    status: number | undefined,
  ): Promise<Judged> {
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
    const result = verdict.allowed ? 'admitted' : 'refused'
    if (ruling === undefined) return { result, project, verdict }
    const judgement = judgementWith(ruling, verdict, request) as Judgement
    return { result, project, verdict: { ...judgement, holdsSlot: verdict.holdsSlot } }
  }

  /** A log does not say what a credential allows: it is taken to allow what a route asks for. */
  #callerOf(logged: LoggedProject, facts: Facts): Caller {
    const project = this.#projectOf(logged, facts)
    const credential = logged.verified ? 'verified' : 'none'
    return {
      project: project && { ...project, scopes: this.#scopes },
      credential,
      identifier: undefined,
      wrong: undefined,
      stripped: [],
    }
  }

  /** The project as the policy knows it, or else as the log records it; undefined if the policy rejects it. */
  #projectOf({ id, plan, environment, verified }: LoggedProject, facts: Facts): Project | undefined {
    const known = this.#projects.get(id)
    if (known !== undefined) return { ...known, verified }
    const unknown = this.#unknownCaller?.(facts)
    if (unknown === undefined || isUnknownCaller(id)) return unknown
    const { plans, environments } = this.#planWords
    return {
      id,
      verified,
      plan: plan !== undefined && plans.includes(plan) ? plan : unknown.plan,
      environment:
        environment !== undefined && environments.includes(environment) ? environment : unknown.environment,
    }
  }
}
