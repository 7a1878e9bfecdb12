/** One verdict out of many rules: which are asked, what is charged, and what a broken limiter or store causes. */
import t, { type Test } from 'tap'
import { ClusterStore } from '../../../gateway/decide/redis/cluster-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Ask } from '../../../gateway/decide/store/store.js'
import type { Limiter } from '../../../gateway/plugin.js'
import type { Verdict } from '../../../gateway/verdict.js'
import { type Bench, bench, decide, inProcess, limits, metered, onRedis, slots } from './deciding.js'

/** What each window and meter has counted, in the order of the rules. */
const usedOf = ({ outcomes }: Verdict) => outcomes.flatMap(({ readings }) => readings).map(({ used }) => used)

t.test('a request its project’s limit refuses does not charge the client’s address', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 10), metered('by-address', 5)]
  t.equal((await decide(world, rules)).allowed, true)
  const refused = await decide(world, rules)
  t.equal(refused.allowed, false)
  t.same(usedOf(refused), [1, 1, 1], 'the address is not charged')
  world.at += 1000
  t.same(usedOf(await decide(world, rules)), [1, 2, 2])
})

t.test('a request another rule refuses does not charge the project', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 100, 100), metered('by-address', 1)]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  const verdict = await decide(world, rules, { client: '192.0.2.2' })
  t.equal(verdict.allowed, true)
  t.same(usedOf(verdict), [2, 2, 1])
})

t.test('a refused request does not charge a window keyed by address either', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 10), limits('by-address', 2, 2, { key: ['client-ip'] })]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  world.at += 1000
  t.equal((await decide(world, rules)).allowed, true, 'the refused requests did not use up the address')
})

async function chargesOnlyTheRefusing(t: Test, world: Bench): Promise<void> {
  const narrow = [
    metered('wide', 50),
    slots('slot', 2),
    metered('narrow', 5, { key: ['project', 'client-ip'] }),
  ]
  const verdicts = await Promise.all(Array.from({ length: 40 }, () => decide(world, narrow)))
  t.equal(verdicts.filter(({ allowed }) => allowed).length, 2, 'the slots refuse the others')
  for (const verdict of verdicts) verdict.release()
  const next = await decide(world, narrow)
  t.same(usedOf(next), [3, 1, 3])
  next.release()
  for (let i = 0; i < 40; i += 1) (await decide(world, narrow)).release()
  const last = await decide(world, narrow)
  t.equal(last.allowed, false)
  const wide = await decide(world, [metered('wide', 50)])
  t.same(usedOf(wide), [6], 'the refusals of the narrow meter are not charged here')
}

t.test('a refused request charges only the meter that refused it', async t => {
  t.test('in process', t => chargesOnlyTheRefusing(t, inProcess()))
  t.test('on Redis', async t => {
    const open = await onRedis(t)
    if (open !== undefined) await chargesOnlyTheRefusing(t, open())
  })
  t.test('slot by slot, as on a Cluster', async t => {
    const open = await onRedis(t, store => new ClusterStore(store))
    if (open !== undefined) await chargesOnlyTheRefusing(t, open())
  })
})

t.test('a client refused because of another request’s reservation is not blocked afterwards', async t => {
  const open = await onRedis(t, store => new ClusterStore(store))
  if (open === undefined) return
  const world = open()
  const rules = [limits('bucket', 1, 10), metered('by-address', 1)]
  t.equal((await decide(world, rules, { client: '192.0.2.9' })).allowed, true)
  const refused = await Promise.all([decide(world, rules), decide(world, rules)])
  t.same(
    refused.map(({ allowed }) => allowed),
    [false, false],
    'one is refused by the project, one by what the other reserved of the address',
  )
  world.at += 1000
  t.equal((await decide(world, rules)).allowed, true)
  t.equal(
    (await decide(world, [metered('by-address', 1)])).allowed,
    false,
    'the address has now spent its quota',
  )
})

t.test('a limiter that throws is treated like a store that is away', async t => {
  const broken = () => {
    throw new Error('broken')
  }
  const misbehave: Record<string, Limiter<unknown>> = {
    demand: { demand: broken },
    applies: { applies: broken, demand: () => ({ kind: 'slots', max: 1, ttlMs: 15_000 }) },
  }
  for (const [where, limiter] of Object.entries(misbehave)) {
    const world = bench(now => new MemoryStore(now), limiter)
    const open = await decide(world, [metered('own', 1, { onStoreError: 'open' })])
    t.equal(open.allowed, true, `${where}: open`)
    const closed = await decide(world, [metered('own', 1, { onStoreError: 'closed' })])
    t.equal(closed.allowed, false, `${where}: closed`)
    t.equal(closed.outcomes[0]?.result, 'unavailable')
    const watched = await decide(world, [
      metered('own', 1, { onStoreError: 'closed', mode: 'report-only' }),
      limits('bucket', 1, 1),
    ])
    t.equal(watched.allowed, true, `${where}: report-only`)
  }
})

t.test('a request holds its slot until it is released', async t => {
  const world = inProcess()
  const rules = [slots('one', 1), slots('watched', 1, { mode: 'report-only' })]
  const first = await decide(world, rules)
  t.equal(first.holdsSlot, true)
  t.equal((await decide(world, rules)).allowed, false)
  first.release()
  first.release()
  const next = await decide(world, rules)
  t.equal(next.allowed, true)
})

t.test('when a call to one slot of a cluster fails, what the others granted is given back', async t => {
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
        return new ClusterStore({
          take,
          rides: () => memory.rides(),
          peek: asks => memory.peek(asks),
          giveBack: (asks, answers) => memory.giveBack(asks, answers),
          charge: charges => memory.charge(charges),
          confirm() {},
          close: () => memory.close(),
        })
      })
      const rules = [
        slots('first', 1, { key: ['client-ip'] }),
        slots('held', 1, { key: ['client-ip'] }),
        metered('own', 1),
        limits('last', 10, 10),
      ]
      await t.rejects(async () => decide(world, rules), /broken/)
      broken = false
      const verdict = await decide(world, rules)
      t.equal(verdict.allowed, true, `${failing} ${manner}`)
      t.same(usedOf(verdict), [1, 1, 1, 1, 1], 'counts are as if the failed request had never been asked')
      verdict.release()
    }
  }
})

t.test('all rules are asked in one call, whatever their keys and modes', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  await decide(world, [
    limits('once', 5, 50),
    slots('held', 3),
    metered('by-address', 5),
    limits('watched', 1, 1, { mode: 'report-only' }),
    slots('watched-slot', 1, { mode: 'report-only' }),
    metered('watched-address', 5, { mode: 'report-only' }),
  ])
  t.same(
    world.calls.map(asks => asks.length),
    [6],
  )
})
