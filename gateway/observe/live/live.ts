/** Live data of this process: rates, the last hour by rule and project, and counters close to a limit. */
import type { Observer } from '../../plugin.js'
import type { Mode } from '../../types.js'
import type { Finished } from '../../verdict.js'
import type { Redactor } from '../redact.js'
import { Busiest } from './busiest.js'
import { Closest } from './closest.js'
import { countRequest, kindOf, RuleTallies, wouldBeRefused } from './outcomes.js'
import { KINDS, LiveTally, STEP_MS, Timeline } from './tally.js'

export interface LiveOptions {
  /** The outcomes of each rule so far, by labels, as the metrics count them. */
  readonly decisions: Iterable<readonly [Readonly<Record<string, string>>, number]>
  /** Replaces personal data as in logs. */
  readonly redactor: Pick<Redactor, 'hash' | 'project'>
  /** Milliseconds since the epoch. */
  now?(): number
}

/** Plain data: what one process reports about itself. Counts and rates are listed by kind (`REQUEST`, `OUTCOMES`). */
export interface LivePart {
  /** Since when it has counted, in milliseconds since the epoch. */
  readonly since: number
  /** Rates of all requests. */
  readonly total: readonly number[]
  /** The rules that have any outcome, with their rates, and the last hour where it is kept. */
  readonly rules: readonly (readonly [id: string, rates: readonly number[], hour: readonly number[] | null])[]
  readonly projects: readonly ProjectPart[]
  readonly closest: readonly ClosestPart[]
}

export interface ProjectPart {
  readonly id: string
  readonly plan: string
  readonly environment: string
  readonly rates: readonly number[]
  readonly hour: readonly number[]
}

/** A counter close to its limit. */
export interface ClosestPart {
  readonly rule: string
  readonly policy: string
  readonly project: string
  readonly key: string
  readonly used: number
  readonly quota: number
  /** Both null for a lifetime window. */
  readonly window_ms: number | null
  readonly reset_ms: number | null
  readonly mode: Mode
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Plain data: steps of ten seconds, the oldest first. */
export interface StepCounts {
  readonly firstStep: number
  readonly points: readonly (readonly number[])[]
}

/** A watching client asks at least this often. */
const WATCHED_MS = 15_000
/** Projects and counters that one process reports: more than are shown, since those of several processes are merged. */
const REPORTED = 100

/**
 * Costs a look-up and two additions per request, and a pass over all tallies every ten seconds. Counters close to a
 * limit are tracked only while a client is watching.
 */
export class Live {
  readonly #options: LiveOptions
  readonly #now: () => number
  readonly #total = new LiveTally()
  readonly #projects = new Busiest()
  readonly #rules: RuleTallies
  readonly #timeline: Timeline
  readonly #closest = new Closest()
  #watchedUntil = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: LiveOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#rules = new RuleTallies(options.decisions)
    this.#timeline = new Timeline(() => this.#tallies(), this.#now())
  }

  /** Feeds everything except the rules, whose outcomes come from the metrics. */
  observer(): Observer {
    return { finished: event => this.#finished(event) }
  }

  /** Records the totals every ten seconds, until `stop`. */
  start(): this {
    const next = STEP_MS - (this.#now() % STEP_MS)
    this.#timer = setTimeout(() => {
      this.look()
      this.#projects.dropSilent()
      this.start()
    }, next).unref()
    return this
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Records the current totals. */
  look(): void {
    const now = this.#now()
    this.#rules.read()
    this.#timeline.look(now)
    if (now <= this.#watchedUntil) return
    this.#watchedUntil = 0
    this.#closest.forget()
  }

  /** The current data. The caller counts as a watching client for the next 15 seconds. */
  report(): LivePart {
    const now = this.#now()
    this.look()
    this.#watchedUntil = now + WATCHED_MS
    const { look, seconds } = this.#timeline.baseline(now)
    const rates = (tally: LiveTally) => kinds(kind => tally.since(look, kind) / seconds)
    const hour = (tally: LiveTally) => kinds(kind => tally.lastHour(kind))
    const { redactor } = this.#options
    return {
      since: this.#timeline.since,
      total: rates(this.#total),
      rules: [...this.#rules]
        .filter(([, tally]) => tally.counts.some(count => count > 0))
        .map(([id, tally]) => [id, rates(tally), tally.lacksHour ? null : hour(tally)] as const),
      projects: this.#projects.top(REPORTED, look).map(({ project, tally }) => ({
        id: redactor.project(project),
        plan: project.plan,
        environment: project.environment,
        rates: rates(tally),
        hour: hour(tally),
      })),
      closest: this.#closest
        .top(REPORTED, now)
        .map(near => ({ ...near, key: redactor.hash(near.outcome.key) }))
        .map(({ outcome: { rule }, reading, project, key, at }) => ({
          rule: rule.id,
          policy: reading.policy,
          project: project === undefined ? '' : redactor.project(project),
          key,
          used: reading.used ?? 0,
          quota: reading.quota,
          window_ms: reading.windowMs ?? null,
          reset_ms: reading.lifetime ? null : Math.ceil(reading.resetMs),
          mode: rule.mode,
          at,
        })),
    }
  }

  /** The completed steps of the last hour for a rule, a project or all requests; undefined when it is not counted. */
  history(of: {
    readonly rule?: string | undefined
    readonly project?: string | undefined
  }): StepCounts | undefined {
    this.look()
    const { step, firstStep } = this.#timeline
    const tally =
      of.rule !== undefined
        ? this.#rules.find(of.rule)
        : of.project !== undefined
          ? this.#projects.find(project => this.#options.redactor.project(project) === of.project)
          : this.#total
    if (tally === undefined) return undefined
    const points = Array.from({ length: step - firstStep }, (_, i) =>
      kinds(kind => tally.inStep(firstStep + i, kind)),
    )
    return { firstStep, points }
  }

  *#tallies(): Generator<LiveTally> {
    yield this.#total
    // First, because projects are bounded in number and so leave enough hours to the rules (see MOST_HOURS).
    yield* this.#projects.tallies()
    for (const [, tally] of this.#rules) yield tally
  }

  #finished(event: Finished): void {
    const { verdict, project } = event
    const kind = kindOf(event)
    const wouldRefuse = wouldBeRefused(event)
    countRequest(this.#total.counts, kind, wouldRefuse)
    if (project !== undefined) countRequest(this.#projects.tallyOf(project).counts, kind, wouldRefuse)
    if (this.#watchedUntil === 0 || verdict === undefined) return
    const now = this.#now()
    for (const outcome of verdict.outcomes) this.#closest.see(outcome, project, now)
    for (const outcome of verdict.reportOnly) this.#closest.see(outcome, project, now)
  }
}

function kinds(of: (kind: number) => number): number[] {
  return Array.from({ length: KINDS }, (_, kind) => of(kind))
}
