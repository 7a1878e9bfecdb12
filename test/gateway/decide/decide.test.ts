/** One verdict out of many rules: who is asked, who gives back, and what report-only rules can never do. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Decider } from '../../../gateway/decide/decide.js'
import { inFlight } from '../../../gateway/decide/in-flight.js'
import { Questions } from '../../../gateway/decide/question.js'
import { SelfCounting } from '../../../gateway/decide/self-counting.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { RedisStore } from '../../../gateway/decide/store/redis.js'
import type { Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import { projectLimits } from '../../../gateway/decide/window.js'
import { rateLimitFields } from '../../../gateway/forward/fields.js'
import { rejectionOf } from '../../../gateway/forward/reject.js'
import type { Limiter, Ruling, SelfCountingLimiter } from '../../../gateway/plugin.js'
import type { Facts, KeyPart, Mode, Project, Rule, Verdict } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const source = { file: 'policy.yaml', line: 1 }

function rule(id: string, kind: string, config: object, changes: Partial<Rule> = {}): Rule {
  return {
    id,
    kind,
    config,
    source,
    mode: 'enforce',
    key: ['project'],
    missing: 'skip',
    onStoreError: 'local',
    ...changes,
  }
}
const limits = (id: string, burst: number, sustained: number, changes: Partial<Rule> = {}) =>
  rule(id, 'project-limits', { burst, sustained, algorithm: 'sliding-window', lease: false }, changes)
const slots = (id: string, max: number, changes: Partial<Rule> = {}) =>
  rule(id, 'in-flight', { max, slotTtl: 15_000, maxHold: 3_600_000, count: 'handshake' }, changes)
const counted = (id: string, quota: number, changes: Partial<Rule> = {}) =>
  rule(id, 'own', { quota }, { key: ['client-ip'], ...changes })

/** A limiter that counts by itself: so many requests per key, ever. */
function ownLimiter(spent: Map<string, number>): SelfCountingLimiter<unknown> {
  return {
    spend({ rule, key }): Ruling {
      const { quota } = rule.config as { quota: number }
      const used = spent.get(key) ?? 0
      if (used >= quota) return { granted: false, store: 'memory', readings: [] }
      spent.set(key, used + 1)
      const giveBack = () => void spent.set(key, (spent.get(key) ?? 0) - 1)
      return { granted: true, store: 'memory', readings: [], giveBack }
    },
  }
}

interface Bench {
  readonly decider: Decider
  /** Counts of the limiter that counts by itself, by key. */
  readonly spent: Map<string, number>
  /** Every call to the store. */
  readonly calls: (readonly Ask[])[]
  at: number
}

const START = 1_700_000_000_000

/** A decider in virtual time. */
function bench(open: (now: () => number) => CounterStore, own?: SelfCountingLimiter<unknown>): Bench {
  const clock = { at: START }
  const now = () => clock.at
  const spent = new Map<string, number>()
  const calls: (readonly Ask[])[] = []
  const tools = { log: quiet, projects: [] } as unknown as Parameters<typeof inFlight.create>[0]
  const limiters = new Map<string, Limiter<unknown>>([
    ['project-limits', projectLimits.create(tools) as Limiter<unknown>],
    ['in-flight', inFlight.create(tools) as Limiter<unknown>],
    ['own', own ?? ownLimiter(spent)],
  ])
  const decider = new Decider({
    questions: new Questions(limiters, Buffer.from('secret'), quiet),
    store: recorded(open(now), calls),
    selfCounting: new SelfCounting(50, quiet),
    now,
    onSlots() {},
    onLost: error => t.fail(String(error)),
  })
  return Object.assign(clock, { decider, spent, calls })
}

function recorded(store: CounterStore, calls: (readonly Ask[])[]): CounterStore {
  return {
    take(asks, holder) {
      calls.push(asks)
      return store.take(asks, holder)
    },
    peek: asks => store.peek(asks),
    giveBack: (asks, answers) => store.giveBack(asks, answers),
    close: () => store.close(),
  }
}

const inProcess = () => bench(now => new MemoryStore(now))

async function onRedis(t: Test): Promise<(() => Bench) | undefined> {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  let clock = () => START
  const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock() * 1000) })
  t.teardown(() => store.close())
  await store.answers(5000)
  return () =>
    bench(now => {
      clock = now
      return store
    })
}

interface Knock {
  readonly project?: string
  readonly path?: string
  readonly client?: string
}

let requests = 0
function decide({ decider }: Bench, rules: readonly Rule[], knock: Knock = {}) {
  const { project = 'acme', path = '/x', client = '192.0.2.1' } = knock
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
  })
}

t.test('rules of other slots are charged first and given back when the project refuses', async t => {
  const { spent, ...world } = inProcess()
  const rules = [limits('bucket', 1, 10), counted('by-address', 5)]
  t.equal((await decide(world as Bench, rules)).allowed, true)
  t.same([...spent.values()], [1])
  t.equal((await decide(world as Bench, rules)).allowed, false)
  t.same([...spent.values()], [1], 'what the address was charged came back')
})

t.test('what another rule refuses costs the project nothing', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 100, 100), counted('by-address', 1)]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  const verdict = await decide(world, rules, { client: '192.0.2.2' })
  t.equal(verdict.allowed, true)
  t.same(
    verdict.outcomes.flatMap(({ readings }) => readings).map(({ used }) => used),
    [2, 2],
  )
})

t.test('a window keyed by something else than the project is given back too', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 10), limits('by-address', 2, 2, { key: ['client-ip'] })]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  world.at += 1000
  t.equal((await decide(world, rules)).allowed, true, 'the refused ones did not use up the address')
})

t.test(
  'a limiter that throws, rejects or is late is like a store that is away, and named in the log',
  async t => {
    const late: Promise<Ruling>[] = []
    const undone: string[] = []
    const misbehave: Record<string, () => Ruling | Promise<Ruling>> = {
      throws: () => {
        throw new Error('broken')
      },
      rejects: () => Promise.reject(new Error('broken')),
      late() {
        const ruling = new Promise<Ruling>(resolve => {
          const answer = {
            granted: true,
            store: 'memory',
            readings: [],
            giveBack: () => undone.push('late'),
          } as const
          setTimeout(resolve, 150, answer)
        })
        late.push(ruling)
        return ruling
      },
    }
    for (const [manner, spend] of Object.entries(misbehave)) {
      const world = bench(now => new MemoryStore(now), { spend })
      const open = await decide(world, [counted('own', 1, { onStoreError: 'open' })])
      t.equal(open.allowed, true, `${manner}: open`)
      const closed = await decide(world, [counted('own', 1, { onStoreError: 'closed' })])
      t.equal(closed.allowed, false, `${manner}: closed`)
      t.equal(closed.outcomes[0]?.result, 'unavailable')
    }
    await Promise.all(late)
    t.same(undone, ['late', 'late'], 'an answer nobody waited for is undone')
  },
)

t.test(
  'a request holds a slot until it is released, also one of a report-only rule that came late',
  async t => {
    const world = inProcess()
    const rules = [slots('one', 1), slots('watched', 1, { mode: 'report-only' })]
    const first = await decide(world, rules)
    t.equal(first.holdsSlot, true)
    t.equal((await decide(world, rules)).allowed, false)
    first.release()
    first.release()
    const next = await decide(world, rules)
    t.equal(next.allowed, true)
  },
)

t.test('when one store call fails, what the others granted is given back', async t => {
  for (const failing of ['first', 'last'] as const) {
    for (const manner of ['throws', 'rejects'] as const) {
      let broken = true
      const world = bench(now => {
        const memory = new MemoryStore(now)
        const take = (asks: readonly Ask[]) => {
          const fails = asks.some(({ key }) => key.includes(failing))
          if (!broken || !fails) return memory.take(asks)
          if (manner === 'throws') throw new Error('broken')
          return Promise.reject(new Error('broken'))
        }
        return Object.assign(Object.create(memory), {
          take,
          giveBack: (...given: Parameters<CounterStore['giveBack']>) => memory.giveBack(...given),
        }) as CounterStore
      })
      const rules = [
        slots('first', 1, { key: ['client-ip'] }),
        slots('held', 1, { key: ['client-ip'] }),
        counted('own', 1),
        limits('last', 10, 10),
      ]
      await t.rejects(async () => decide(world, rules), /broken/)
      t.equal(world.spent.get([...world.spent.keys()][0] as string), 0, 'also by a limiter of its own')
      broken = false
      const verdict = await decide(world, rules)
      t.equal(verdict.allowed, true, `${failing} ${manner}`)
      verdict.release()
    }
  }
})

t.test('a key that Redis refused is refused here until it could pass', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [limits('flooded', 2, 100), slots('write', 1)]
  for (let i = 0; i < 2; i += 1) (await decide(world, rules)).release()
  for (let i = 0; i < 1000; i += 1) {
    const verdict = await decide(world, rules)
    t.equal(verdict.allowed, false)
    if (i % 100 === 0) world.at += 90
    if (verdict.allowed) break
  }
  t.ok(world.calls.length < 10, `${world.calls.length} calls for 1000 refusals`)
  const verdict = await decide(world, rules)
  const reset = verdict.outcomes[0]?.readings[0]?.resetMs ?? 0
  t.ok(reset > 0 && reset <= 100, `its times are counted down: ${reset} ms`)
  world.at += reset
  t.equal((await decide(world, rules)).allowed, true, 'and it passes when it said it would')
})

t.test('a remembered refusal ends with the quota it was made under', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const tight = [limits('edited', 1, 1)]
  await decide(world, tight)
  t.equal((await decide(world, tight)).allowed, false)
  t.equal((await decide(world, [limits('edited', 3, 3)])).allowed, true, 'raised: passes at once')
  t.equal((await decide(world, [limits('edited', 2, 2)])).allowed, false, 'lowered: what was spent counts')
})

t.test('a slot that comes back is not hidden by a remembered refusal', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [slots('one', 1, { key: ['project', 'full-path'] })]
  const first = await decide(world, rules)
  t.equal((await decide(world, rules)).allowed, false)
  first.release()
  t.equal((await decide(world, rules)).allowed, true)
})

t.test('all rules of a project are asked in one call, the report-only ones with them', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  await decide(world, [
    limits('once', 5, 50),
    slots('held', 3),
    limits('watched', 1, 1, { mode: 'report-only' }),
    slots('watched-slot', 1, { mode: 'report-only' }),
  ])
  t.same(
    world.calls.map(asks => asks.length),
    [4],
  )
})

t.test('nobody waits for a report-only rule of another slot', async t => {
  let answer: (ruling: Ruling) => void = () => {}
  const waits = new Promise<Ruling>(resolve => {
    answer = resolve
  })
  const world = bench(now => new MemoryStore(now), { spend: () => waits })
  const verdict = decide(world, [limits('bucket', 5, 5), counted('slow', 1, { mode: 'report-only' })])
  t.notOk(verdict instanceof Promise, 'the verdict is there')
  const { settled, reportOnly } = verdict as Verdict
  t.same(reportOnly, [])
  answer({ granted: false, store: 'memory', readings: [] })
  await settled
  t.same(
    reportOnly.map(({ result }) => result),
    ['limited'],
    'its outcome comes after',
  )
})

t.test('a report-only rule sees refused requests too', async t => {
  const world = inProcess()
  const rules = [limits('enforced', 3, 100), limits('watched', 1, 100, { mode: 'report-only' })]
  const results: (string | undefined)[] = []
  for (let i = 0; i < 6; i += 1) results.push((await decide(world, rules)).reportOnly[0]?.result)
  t.same(results, ['allowed', 'limited', 'limited', 'limited', 'limited', 'limited'])
})

const aMode = fc.constantFrom<Mode>('enforce', 'report-only')
const aKey = fc.constantFrom<readonly KeyPart[]>(
  ['project'],
  ['project', 'full-path'],
  ['client-ip'],
  ['full-path'],
)
const anAlgorithm = fc.constantFrom('sliding-window', 'fixed-window', 'token-bucket')
const aRule = fc.oneof(
  fc
    .record({
      burst: fc.integer({ min: 1, max: 4 }),
      sustained: fc.integer({ min: 1, max: 12 }),
      algorithm: anAlgorithm,
    })
    .map(config => ({ kind: 'project-limits', config: { ...config, lease: false } })),
  fc.integer({ min: 1, max: 3 }).map(max => ({
    kind: 'in-flight',
    config: { max, slotTtl: 15_000, maxHold: 3_600_000, count: 'handshake' },
  })),
  fc.integer({ min: 1, max: 8 }).map(quota => ({ kind: 'own', config: { quota } })),
)
const somePolicy = fc
  .array(fc.tuple(aRule, aMode, aKey), { minLength: 1, maxLength: 6 })
  .map(rules => rules.map(([{ kind, config }, mode, key], i) => rule(`r${i}`, kind, config, { mode, key })))
const someTraffic = fc.array(
  fc.record({
    pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700 }), fc.constant(20_000)),
    project: fc.constantFrom('acme', 'umbrella'),
    path: fc.constantFrom('/x', '/y'),
    client: fc.constantFrom('192.0.2.1', '192.0.2.2'),
    /** How many requests later this one ends. */
    lasts: fc.integer({ min: 0, max: 5 }),
  }),
  { minLength: 1, maxLength: 40 },
)
type Traffic = typeof someTraffic extends fc.Arbitrary<infer T> ? T : never

/** Everything the clients notice: verdict, fields, refusals, and whether a slot is held. */
async function transcript(world: Bench, rules: readonly Rule[], traffic: Traffic): Promise<unknown[]> {
  const running: { verdict: Verdict; ends: number }[] = []
  const seen: unknown[] = []
  for (const [i, { pauseMs, lasts, ...knock }] of traffic.entries()) {
    world.at += pauseMs
    for (const { verdict, ends } of running) if (ends <= i) verdict.release()
    const verdict = await decide(world, rules, knock)
    seen.push({
      allowed: verdict.allowed,
      holdsSlot: verdict.holdsSlot,
      fields: rateLimitFields(verdict, 'both'),
      refusal: verdict.allowed ? undefined : rejectionOf(verdict, 'id'),
    })
    await verdict.settled
    running.push({ verdict, ends: verdict.allowed ? i + lasts : i })
  }
  for (const { verdict } of running) verdict.release()
  return seen
}

async function neverInterferes(t: Test, open: () => Bench, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(somePolicy, someTraffic, fc.nat(), async (policy, traffic, salt) => {
      // A world of its own for each run: fresh ids are fresh counters.
      const named = (world: string) =>
        policy.map(one => ({ ...one, id: `${one.id}-${salt}-${world}-${requests}` }))
      const all = named('w')
      const enforced = all.filter(({ mode }) => mode === 'enforce')
      const without = await transcript(open(), rename(enforced, 'a'), traffic)
      const together = await transcript(open(), rename(all, 'b'), traffic)
      t.same(unnamed(together, 'b'), unnamed(without, 'a'))
    }),
    { numRuns: runs },
  )
}
const rename = (rules: readonly Rule[], world: string) =>
  rules.map(one => ({ ...one, id: `${one.id}-${world}` }))
const unnamed = (seen: unknown[], world: string) => JSON.stringify(seen).replaceAll(`-${world}`, '')

t.test('taking all report-only rules away changes no answer, field or slot', async t => {
  t.test('in process', t => neverInterferes(t, inProcess, 300))
  t.test('on Redis', async t => {
    const open = await onRedis(t)
    if (open !== undefined) await neverInterferes(t, open, 40)
  })
})
