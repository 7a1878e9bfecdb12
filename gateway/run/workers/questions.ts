/**
 * Passes questions of the admin port to the workers: to any one if all know the answer, to all if each knows a part. A
 * changed configuration is activated in all of them, or in none.
 */
import type { FileContents } from '../../../config/files.js'
import type { Credits } from '../../admin/credit.js'
import type { Asked } from '../../admin/explain.js'
import type { CounterName, Inspected, PolicyOf } from '../../admin/inspect.js'
import type { HistoryOf } from '../../admin/live.js'
import type { OverrideReason } from '../../admin/settable.js'
import type { Configuration } from '../../configured/load.js'
import type { Slots } from '../../decide/held-slots.js'
import { Unreachable } from '../../errors.js'
import { MOST_SLOTS, policyOf, type Reset } from '../../explain/inspect.js'
import type { CertificatePair } from '../../listen/certificate.js'
import type { StepCounts } from '../../observe/live/live.js'
import { type MetricsSnapshot, mergeSnapshots } from '../../observe/series.js'
import type { Texts } from '../../overrides/stored-form.js'
import type { KeyUses } from '../key-list.js'
import { mergeBackends } from '../live/join-upstreams.js'
import type { AnsweredParts } from '../live/live-data.js'
import type { ProcessPart } from '../live/part.js'
import type { BackendState } from '../upstreams.js'
import { Disconnected } from './channel.js'
import type { Member, WorkerPool } from './worker-pool.js'

const PATIENCE_MS = 5_000
/** For questions to all workers, of which the others can still answer. */
const SHORT_PATIENCE_MS = 900
/** For a change that the caller expects to be in force; less than the time that the tools wait. */
const OVERRIDE_PATIENCE_MS = 3_000

export class WorkerQuestions implements Inspected {
  readonly #pool: Pick<WorkerPool, 'members'>
  readonly #loaded: () => Configuration
  readonly #series = new WorkerSeries()

  /** `loaded` returns the configuration in force. */
  constructor(pool: Pick<WorkerPool, 'members'>, loaded: () => Configuration) {
    this.#pool = pool
    this.#loaded = loaded
  }

  /**
   * The response to a scrape; `own` are the supervisor's series. For a worker that does not answer, its last report is
   * used.
   */
  async metrics(own: MetricsSnapshot): Promise<string> {
    await this.#all(async ({ id, channel }) => this.#series.report(id, await channel.ask('metrics')))
    return this.#series.text(own)
  }

  /** A worker has ended. */
  ended(id: number): void {
    this.#series.ended(id)
  }

  async backends(): Promise<BackendState[]> {
    return mergeBackends((await this.#all(({ channel }) => channel.ask('backends'))).parts)
  }

  /** `missing`: process ids of workers that did not report their slots. */
  async slots(): Promise<Slots & { readonly missing?: readonly number[] }> {
    const { parts, missing } = await this.#all(({ channel }) => channel.ask('slots'))
    const merged = mergeSlots(parts, MOST_SLOTS)
    return missing.length === 0 ? merged : { ...merged, missing }
  }

  live(): Promise<AnsweredParts<ProcessPart>> {
    return this.#all(({ channel }) => channel.ask('live'))
  }

  async keyUses(): Promise<KeyUses> {
    return (await this.#all(({ channel }) => channel.ask('keyUses'))).parts.flat()
  }

  history(of: HistoryOf): Promise<AnsweredParts<StepCounts | undefined>> {
    return this.#all(({ channel }) => channel.ask('history', of))
  }

  /** What workers that do not answer in time have counted, they store by themselves. */
  async flushUsage(): Promise<void> {
    await this.#all(({ channel }) => channel.ask('flushUsage'))
  }

  policy(of: PolicyOf): object {
    return policyOf(this.#loaded(), of)
  }

  counters(project: string, parts: Omit<CounterName, 'rule' | 'project'>): Promise<object> {
    return this.#any(({ channel }) => channel.ask('counters', project, parts))
  }

  explain(asked: Asked): Promise<object> {
    return this.#any(({ channel }) => channel.ask('explain', asked))
  }

  /** One worker resets the counter; the others only delete the refusals they remember for it. */
  async reset(counter: CounterName, reason: OverrideReason & { readonly from: string }): Promise<Reset> {
    const done = await this.#any(({ channel }) => channel.ask('reset', counter, reason))
    await this.#all(({ channel }) => channel.ask('forget', done.key))
    return done
  }

  /** One worker adds credit; all of them delete the refusals they remember for its counter. */
  readonly credits: Credits = {
    add: async (project, body, sender) => {
      const { entry, key } = await this.#any(({ channel }) => channel.ask('addCredit', project, body, sender))
      await this.#all(({ channel }) => channel.ask('forgetRefusals', key))
      return entry
    },
    list: project => this.#any(({ channel }) => channel.ask('listCredit', project)),
  }

  /** Resolves when every worker that answers in time has put the overrides in force. */
  async pushOverrides(texts: Texts): Promise<void> {
    await this.#all(({ channel }) => channel.ask('overrides', texts), OVERRIDE_PATIENCE_MS)
  }

  /** Redis has not answered here: the workers look whether their connections still work. */
  suspectRedis(): void {
    void this.#all(({ channel }) => channel.ask('suspectRedis'))
  }

  /** The answers of all workers that answer in time, and the process ids of the others. */
  async #all<T>(
    ask: (member: Member) => Promise<T>,
    patienceMs = SHORT_PATIENCE_MS,
  ): Promise<AnsweredParts<T>> {
    const parts: T[] = []
    const missing: number[] = []
    const asked = this.#pool.members.map(async member => {
      const answer = member.answers() ? within(patienceMs, ask(member), member) : Promise.reject()
      await answer.then(
        one => parts.push(one),
        () => missing.push(member.pid),
      )
    })
    await Promise.all(asked)
    return { parts, missing }
  }

  #any<T>(ask: (member: Member) => Promise<T>): Promise<T> {
    const { members } = this.#pool
    const member = members.find(one => one.answers()) ?? members[0]
    if (member === undefined) throw new Unreachable('No worker runs just now: others are being started.')
    return within(PATIENCE_MS, ask(member), member)
  }
}

/** How long a worker may take to open what a configuration needs. */
const PREPARE_MS = 30_000
const COMMIT_MS = 5_000

/** What every worker is to go on with. */
export interface NextConfiguration {
  readonly contents: FileContents
  /** Undefined without TLS. */
  readonly certificate: CertificatePair | undefined
}

/**
 * First every worker opens the new configuration, then all activate it. Rejects, with nothing changed, when one cannot,
 * or does not answer. A worker that ends meanwhile is left out: its successor starts with the configuration in force by
 * then.
 */
export async function changeAll(
  { members }: Pick<WorkerPool, 'members'>,
  { contents, certificate }: NextConfiguration,
): Promise<void> {
  const silent = members.find(({ answers }) => !answers())
  if (silent !== undefined) {
    throw new Error(
      `Worker ${silent.pid} does not answer. Unless it recovers it is replaced; the change is tried again by itself.`,
    )
  }
  const prepared = await Promise.allSettled(
    members.map(member => within(PREPARE_MS, member.channel.ask('prepare', contents), member)),
  )
  const failed = prepared.find(
    (one): one is PromiseRejectedResult => one.status === 'rejected' && !(one.reason instanceof Disconnected),
  )
  const finish = ({ channel }: Member) =>
    failed === undefined ? channel.ask('commit', certificate ?? null) : channel.ask('discard')
  // Neither can fail in a live worker; a busy one does it later.
  const finished = members.map(member => within(COMMIT_MS, finish(member), member).catch(() => undefined))
  await Promise.all(finished)
  if (failed !== undefined) throw failed.reason
}

/** Rejects when a worker takes longer to answer. */
function within<T>(ms: number, answer: Promise<T>, { pid }: Member): Promise<T> {
  return new Promise((resolve, reject) => {
    const error = new Error(`Worker ${pid} has not answered within ${ms / 1000} s.`)
    const timer = setTimeout(() => reject(error), ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** The `most` oldest slots of all workers. */
function mergeSlots(all: readonly Slots[], most: number): Slots {
  const slots = all.flatMap(one => one.slots).sort((one, other) => other.age_ms - one.age_ms)
  return { total: all.reduce((sum, { total }) => sum + total, 0), slots: slots.slice(0, most) }
}

/** The series of all workers. The counts of a worker remain after it has ended, because a counter must not fall. */
class WorkerSeries {
  /** The last report of each worker, by its id. */
  readonly #last = new Map<number, MetricsSnapshot>()
  #ended: readonly MetricsSnapshot[] = []

  /** Records a worker's report. */
  report(worker: number, snapshot: MetricsSnapshot): void {
    this.#last.set(worker, snapshot)
  }

  /** A worker has ended: the counts of its last report are kept. */
  ended(worker: number): void {
    const last = this.#last.get(worker)
    if (last !== undefined) this.#ended = [...this.#ended, lasting(last)]
    this.#last.delete(worker)
  }

  /** The response to a scrape; `own` are the supervisor's series. */
  async text(own: MetricsSnapshot): Promise<string> {
    const folding = this.#ended
    if (folding.length > 1) {
      const folded = await mergeSnapshots(folding).snapshot()
      // A concurrent scrape may already have replaced it.
      if (this.#ended[0] === folding[0]) this.#ended = [folded, ...this.#ended.slice(folding.length)]
    }
    return mergeSnapshots([own, ...this.#ended, ...this.#last.values()]).text()
  }
}

/** The snapshot without gauges, which end with their process. */
function lasting(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ type }) => type === 'counter' || type === 'histogram')
}
