/** A decider in virtual time, rules for it, and requests to decide on. */
import t, { type Test } from 'tap'
import { compiledRule } from '../../../gateway/compiled-rule.js'
import { Decider } from '../../../gateway/decide/decide.js'
import { inFlight } from '../../../gateway/decide/in-flight.js'
import { projectLimits } from '../../../gateway/decide/project-limits.js'
import { type Client, Questions } from '../../../gateway/decide/question.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import { WaitQueues } from '../../../gateway/decide/wait/wait-queues.js'
import type { WaitResult } from '../../../gateway/decide/wait/waiter.js'
import type { MeterDemand } from '../../../gateway/demand.js'
import type { Limiter } from '../../../gateway/plugin.js'
import type { Facts, Project, Rule } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const HOUR = 3_600_000
const source = { file: 'policy.yaml', line: 1 }

export function rule(id: string, kind: string, config: object, changes: Partial<Rule> = {}): Rule {
  return compiledRule({
    id,
    kind,
    config,
    source,
    mode: 'enforce',
    key: ['project'],
    missing: 'skip',
    onStoreError: 'local',
    ...changes,
  })
}
export const limits = (id: string, burst: number, sustained: number, changes: Partial<Rule> = {}) =>
  rule(id, 'project-limits', { burst, sustained, algorithm: 'sliding-window', lease: false }, changes)
export const slots = (id: string, max: number, changes: Partial<Rule> = {}) =>
  rule(id, 'in-flight', { max, slotTtl: 15_000, maxHold: 3_600_000, count: 'handshake' }, changes)
/** Allows `quota` requests an hour per address. */
export const metered = (id: string, quota: number, changes: Partial<Rule> = {}) =>
  rule(id, 'metered', { quota, ms: HOUR, blockMs: 0 }, { key: ['client-ip'], ...changes })

/** A limiter whose rules configure a meter. */
const meter: Limiter<unknown> = {
  demand({ rule }) {
    return { kind: 'meter', ...(rule.config as Pick<MeterDemand, 'quota' | 'ms' | 'blockMs'>) }
  },
}

export interface Bench {
  readonly decider: Decider
  /** Every call to the store so far. */
  readonly calls: (readonly Ask[])[]
  readonly queues: WaitQueues
  /** How requests that waited have ended, by rule. */
  readonly waited: [rule: string, result: WaitResult][]
  at: number
  /** Lets time pass, timers included. */
  pass(ms: number): Promise<void>
}

/** A decider in virtual time. */
export function bench(open: (now: () => number) => CounterStore, own: Limiter<unknown> = meter): Bench {
  const clock = { at: START }
  const pending = new Set<Promise<unknown>>()
  const timers = new VirtualTimers(clock, pending)
  const now = () => clock.at
  const calls: (readonly Ask[])[] = []
  const tools = { log: quiet, projects: [] } as unknown as Parameters<typeof inFlight.create>[0]
  const limiters = new Map<string, Limiter<unknown>>([
    ['project-limits', projectLimits.create(tools) as Limiter<unknown>],
    ['in-flight', inFlight.create(tools) as Limiter<unknown>],
    ['metered', own],
  ])
  const waited: [string, WaitResult][] = []
  const queues = new WaitQueues({
    now,
    after: (ms, call) => timers.after(ms, call),
    onWaited: (rule, result) => waited.push([rule, result]),
  })
  const decider = new Decider({
    questions: new Questions(limiters, Buffer.from('secret'), quiet),
    store: recorded(open(now), calls, pending),
    now,
    queues,
    onSlots() {},
    onLost: error => t.fail(String(error)),
  })
  return Object.assign(clock, { decider, calls, queues, waited, pass: (ms: number) => timers.pass(ms) })
}

/** Timers of a clock that a test moves. */
class VirtualTimers {
  readonly #clock: { at: number }
  /** Calls under way. */
  readonly #pending: ReadonlySet<Promise<unknown>>
  readonly #timers = new Set<{ readonly at: number; readonly call: () => void }>()

  constructor(clock: { at: number }, pending: ReadonlySet<Promise<unknown>>) {
    this.#clock = clock
    this.#pending = pending
  }

  after(ms: number, call: () => void): () => void {
    const timer = { at: this.#clock.at + ms, call }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Between timers, promises and calls to Redis get time to settle. */
  async pass(ms: number): Promise<void> {
    const end = this.#clock.at + ms
    await this.#settle()
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      this.#timers.delete(next)
      this.#clock.at = Math.max(this.#clock.at, next.at)
      next.call()
      await this.#settle()
    }
    this.#clock.at = end
    await this.#settle()
  }

  async #settle(): Promise<void> {
    do {
      await Promise.allSettled(this.#pending)
      await new Promise(resolve => setImmediate(resolve))
    } while (this.#pending.size > 0)
  }
}

function recorded(
  store: CounterStore,
  calls: (readonly Ask[])[],
  pending: Set<Promise<unknown>>,
): CounterStore {
  const noted = <T>(call: T): T => {
    if (!(call instanceof Promise)) return call
    pending.add(call)
    call.finally(() => pending.delete(call)).catch(() => {})
    return call
  }
  return {
    take(asks, holder) {
      calls.push(asks)
      return noted(store.take(asks, holder))
    },
    rides: (observed, enforced) => store.rides(observed, enforced),
    peek: asks => noted(store.peek(asks)),
    giveBack: (asks, answers) => store.giveBack(asks, answers),
    charge: charges => store.charge(charges),
    close: () => store.close(),
  }
}

/** Counts in this process. */
export const inProcess = () => bench(now => new MemoryStore(now))

/** Counts on an empty Redis, through the store that `behind` wraps around it; undefined when no Redis is available. */
export async function onRedis(
  t: Test,
  behind: (store: RedisStore) => CounterStore = store => store,
): Promise<(() => Bench) | undefined> {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  let clock = () => START
  const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock() * 1000) })
  t.teardown(() => store.close())
  await store.answers(5000)
  return () =>
    bench(now => {
      clock = now
      return behind(store)
    })
}

interface Knock {
  readonly project?: string
  readonly path?: string
  readonly client?: string
  /** Whoever waits for the response. */
  readonly caller?: Client
}

let requests = 0

/** The verdict on one POST request under these rules. */
export function decide({ decider }: Bench, rules: readonly Rule[], knock: Knock = {}) {
  const { project = 'acme', path = '/x', client = '192.0.2.1', caller } = knock
  requests += 1
  const facts = {
    id: `r${requests}`,
    method: 'POST',
    path,
    query: '',
    network: client,
    header: () => undefined,
  }
  return decider.decide({
    facts: facts as unknown as Facts,
    project: { id: project, plan: 'growth', environment: 'production' } satisfies Project,
    matched: rules.map(rule => ({ rule, route: '*' })),
    client: caller,
  })
}
