/** Counts finished requests by hour, project and bucket, and passes the counts on every ten seconds. */
import { PROJECT_LIMITS } from '../../config/words/bucket.js'
import { ownerOfTrial } from '../../config/words/share.js'
import { BY_CLIENT } from '../../config/words/words.js'
import type { Log, Project } from '../types.js'
import type { Finished, Judgement, Outcome } from '../verdict.js'
import { addTo, hourOf, nameOf, type UsageCounts } from './row.js'
import type { UsageBatch, UsageStore } from './store.js'

const FLUSH_MS = 10_000
/** Projects with rows of their own in one hour; credentials may name any number. */
const MOST_PROJECTS = 10_000
/** Names that no project can have. */
const OTHERS = { project: '(others)', plan: '', environment: '' }
/** Unknown callers that are counted by their address share one row. */
const UNKNOWN = `${BY_CLIENT}*`

export class UsageCounter {
  readonly #store: UsageStore
  readonly #log: Log
  readonly #timer: NodeJS.Timeout
  /** What was not passed on yet, by hour. */
  readonly #hours = new Map<number, Map<string, UsageCounts>>()
  /** On their way, the oldest first. */
  readonly #batches: UsageBatch[] = []
  #names = { hour: 0, projects: new Set<string>() }
  #keepMs = 0
  #flushing: Promise<void> | undefined

  constructor(store: UsageStore, log: Log) {
    this.#store = store
    this.#log = log
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Counts a request for which there was a verdict. */
  finished({ verdict, project, startedAt }: Finished, keepMs: number): void {
    if (verdict === undefined || project === undefined) return
    this.#keepMs = keepMs
    const hour = hourOf(startedAt)
    const bucket = bucketIn(verdict)
    const called = bucket?.rule.id ?? verdict.unlimited ?? null
    const name = nameOf({ ...this.#whose(project, hour), bucket: called })
    const counts = this.#hours.get(hour) ?? new Map<string, UsageCounts>()
    this.#hours.set(hour, counts)
    const admitted = Number(verdict.allowed)
    addTo(counts, name, { requests: 1, admitted, refused: 1 - admitted, cost: admitted * costOf(bucket) })
  }

  /** Passes on what was counted by now. Never rejects: what could not be stored is tried again. */
  async flush(): Promise<void> {
    await this.#flushing
    this.#flushing ??= this.#passOn()
      .catch(error => this.#log.debug({ err: error }, 'usage could not be stored'))
      .finally(() => {
        this.#flushing = undefined
      })
    await this.#flushing
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #passOn(): Promise<void> {
    // While the store is away counts gather in the hours, not in ever more batches.
    if (this.#batches.length === 0) {
      for (const [hour, counts] of this.#hours) this.#batches.push({ hour, counts })
      this.#hours.clear()
    }
    const oldest = hourOf(Date.now() - this.#keepMs)
    for (const hour of this.#hours.keys()) if (hour < oldest) this.#hours.delete(hour)
    for (let next = this.#batches[0]; next !== undefined; next = this.#batches[0]) {
      await this.#store.add(next, this.#keepMs)
      this.#batches.shift()
    }
  }

  #whose({ id, plan, environment, client }: Project, hour: number) {
    const project = client === undefined ? id : UNKNOWN
    if (hour > this.#names.hour) this.#names = { hour, projects: new Set() }
    const { projects } = this.#names
    if (!projects.has(project) && projects.size >= MOST_PROJECTS) return OTHERS
    projects.add(project)
    return { project, plan, environment }
  }
}

/** What the bucket says about a request, or else, where there is none, the report-only bucket. */
function bucketIn({ outcomes, reportOnly, unlimited }: Judgement): Outcome | undefined {
  const bucket = outcomes.find(isBucket)
  return bucket ?? (unlimited === undefined ? reportOnly.find(isBucket) : undefined)
}

function isBucket({ rule }: Outcome): boolean {
  return rule.kind === PROJECT_LIMITS && ownerOfTrial(rule.id) === undefined
}

/** What its response has told, or else what was charged at first. */
function costOf(bucket: Outcome | undefined): number {
  return bucket?.spent ?? bucket?.readings[0]?.cost ?? 1
}
