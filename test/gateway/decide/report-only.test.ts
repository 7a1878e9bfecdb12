/** Report-only rules: what they report, and that they can never change a response. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { ClusterStore } from '../../../gateway/decide/redis/cluster-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { rateLimitFields } from '../../../gateway/forward/fields.js'
import { rejectionOf } from '../../../gateway/forward/reject.js'
import type { KeyPart, Mode, Rule } from '../../../gateway/types.js'
import type { Verdict } from '../../../gateway/verdict.js'
import { type Bench, bench, decide, inProcess, limits, metered, onRedis, rule } from './deciding.js'

t.test('no request waits for a report-only rule that needs a call of its own', async t => {
  let answer: () => void = () => {}
  const waits = new Promise<void>(resolve => {
    answer = resolve
  })
  const world = bench(now => {
    const memory = new MemoryStore(now)
    return {
      take: asks => (asks[0]?.group === 0 ? memory.take(asks) : waits.then(() => memory.take(asks))),
      rides: () => false,
      peek: asks => memory.peek(asks),
      giveBack: (asks, answers) => memory.giveBack(asks, answers),
      charge: charges => memory.charge(charges),
      close: () => memory.close(),
    }
  })
  const rules = [limits('bucket', 5, 5), metered('slow', 1, { mode: 'report-only' })]
  const verdicts = [decide(world, rules), decide(world, rules)] as Verdict[]
  for (const verdict of verdicts) {
    t.notOk(verdict instanceof Promise, 'the verdict is there at once')
    t.same(verdict.reportOnly, [])
  }
  answer()
  await Promise.all(verdicts.map(({ settled }) => settled))
  t.same(
    verdicts.map(({ reportOnly }) => reportOnly.map(({ result }) => result)),
    [['allowed'], ['limited']],
    'the outcome of the report-only rule follows',
  )
})

t.test('a report-only rule also counts requests that enforced rules refuse', async t => {
  const world = inProcess()
  const rules = [limits('enforced', 3, 100), limits('watched', 1, 100, { mode: 'report-only' })]
  const results: (string | undefined)[] = []
  for (let i = 0; i < 6; i += 1) results.push((await decide(world, rules)).reportOnly[0]?.result)
  t.same(results, ['allowed', 'limited', 'limited', 'limited', 'limited', 'limited'])
})

t.test('a report-only rule also counts what another slot of a Cluster refuses', async t => {
  const world = bench(now => new ClusterStore(Object.assign(new MemoryStore(now), { confirm() {} })))
  const rules = [
    limits('bucket', 9, 9),
    limits('bucket.trial', 2, 9, { mode: 'report-only' }),
    metered('flood', 1),
  ]
  const seen: string[] = []
  for (let i = 0; i < 4; i += 1) {
    const { allowed, settled, reportOnly } = await decide(world, rules)
    await settled
    seen.push(`${allowed} ${reportOnly.map(({ result }) => result)}`)
  }
  t.same(seen, ['true allowed', 'false allowed', 'false limited', 'false limited'])
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
  fc
    .record({
      quota: fc.integer({ min: 1, max: 8 }),
      ms: fc.constant(60_000),
      blockMs: fc.constantFrom(0, 120_000),
    })
    .map(config => ({ kind: 'metered', config })),
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
    /** After how many further requests this one ends. */
    lasts: fc.integer({ min: 0, max: 5 }),
  }),
  { minLength: 1, maxLength: 40 },
)
type Traffic = typeof someTraffic extends fc.Arbitrary<infer T> ? T : never

/** Everything that clients notice: verdict, fields, refusals, and whether a slot is held. */
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

let worlds = 0
async function neverInterferes(t: Test, open: () => Bench, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(somePolicy, someTraffic, async (policy, traffic) => {
      // Fresh ids give each run fresh counters.
      worlds += 1
      const all = rename(policy, String(worlds))
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

t.test('removing all report-only rules changes no response, field or slot', async t => {
  t.test('in process', t => neverInterferes(t, inProcess, 300))
  t.test('on Redis', async t => {
    const open = await onRedis(t)
    if (open !== undefined) await neverInterferes(t, open, 40)
  })
})
