/** What counters in this process cost: little memory for each key, and a bounded amount whatever keys come. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { BoundedMap, type Use } from '../../../gateway/decide/store/bounded-map.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Demand } from '../../../gateway/demand.js'
import type { Algorithm } from '../../../gateway/types.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heapUsed(): number {
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().heapUsed
}

function demandOf(algorithm: Algorithm): Demand {
  const windows = [
    { name: 'burst', quota: 10, ms: 1000, algorithm },
    { name: 'sustained', quota: 300, ms: 60_000, algorithm },
  ]
  return { kind: 'windows', windows, lease: false }
}

const clock = { at: 0 }
const take = (store: MemoryStore, key: string, demand: Demand) =>
  store.take([{ key, demand, group: 0, onStoreError: 'local' }])[0]

t.test('each of 100000 keys with one request costs at most 260 bytes', async t => {
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket'] as const) {
    const store = new MemoryStore(() => clock.at)
    const demand = demandOf(algorithm)
    const before = heapUsed()
    for (let i = 0; i < 100_000; i += 1) {
      clock.at += 0.1
      take(store, `sluice:1:{customer-${i}}:e:project-limits:sessions-whoami`, demand)
    }
    const bytes = (heapUsed() - before) / 100_000
    t.ok(bytes <= 260, `${algorithm}: ${bytes.toFixed(0)} bytes`)
    t.match(take(store, 'sluice:1:{customer-99999}:e:project-limits:sessions-whoami', demand), {
      counts: [{ used: 2 }, { used: 2 }],
    })
    clock.at += 130_000
    for (let i = 0; i < 4000; i += 1) take(store, 'any', demand)
    t.ok((heapUsed() - before) / 100_000 < 25, 'keys cost nothing once their windows are over')
    await store.close()
  }
})

t.test('a flood of distinct keys uses a bounded amount of memory', async t => {
  const store = new MemoryStore(() => clock.at)
  const demand = demandOf('sliding-window')
  const before = heapUsed()
  let highest = 0
  for (let i = 0; i < 700_000; i += 1) {
    take(store, `sluice:1:{made-up-${i}}:e:project-limits:all`, demand)
    if (i % 100_000 === 99_999) highest = Math.max(highest, heapUsed() - before)
  }
  t.ok(highest < 100e6, `${(highest / 1e6).toFixed(0)} MB`)
  await store.close()
})

t.test('keys that are set and deleted over and over leave nothing behind', async t => {
  const map = new BoundedMap<{ at: number }>(10_000)
  const before = heapUsed()
  for (let i = 0; i < 300_000; i += 1) {
    map.set(`key ${i % 5}`, { at: i })
    if (i % 3 === 0) map.delete(`key ${(i + 2) % 5}`)
  }
  t.ok(heapUsed() - before < 1_000_000, '60,000 sets of each key add less than a megabyte')
  t.ok(map.size <= 5)
})

t.test('windows of another length in each request leave nothing behind', async t => {
  const store = new MemoryStore(() => clock.at)
  const before = heapUsed()
  for (let i = 0; i < 100_000; i += 1) {
    const windows = [
      { name: 'until-tomorrow', quota: 10, ms: 1000 + i, algorithm: 'sliding-window' },
    ] as const
    take(store, 'sluice:1:{acme}:e:by-day:all', { kind: 'windows', windows, lease: false })
  }
  const bytes = heapUsed() - before
  t.ok(bytes < 1_000_000, `${bytes} bytes`)
  await store.close()
})

t.test('a full bounded map drops the key that was set longest ago', async () => {
  const operation = fc.record({ key: fc.constantFrom(...'abcdefg'), deletes: fc.boolean() })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(operation, { maxLength: 60 }),
      (most, operations) => {
        const map = new BoundedMap<number>(most)
        const model: [string, number][] = []
        for (const [i, { key, deletes }] of operations.entries()) {
          const at = model.findIndex(([known]) => known === key)
          if (at >= 0) model.splice(at, 1)
          if (deletes) map.delete(key)
          else {
            model.push([key, i])
            const forgotten = model.length > most ? model.shift()?.[0] : undefined
            if (map.set(key, i) !== forgotten) return false
          }
          if (map.size !== model.length) return false
        }
        const known = new Map(model)
        return [...'abcdefg'].every(key => map.get(key) === known.get(key))
      },
    ),
  )
})

/** Rules as their keys name them: by project, and by what a client sends. */
const RULES = {
  mails: (i: number) => `sluice:1:{acme-${i}}:e:project-limits:mails`,
  logins: (i: number) => `sluice:1:{acme-${i}}:e:volumetric:failed-logins`,
  devices: (i: number) => `sluice:1:*:{volumetric:per-device:8:device-${i}}:e`,
  pages: (i: number) => `sluice:1:{client:10.0.0.${i}}:e:project-limits:mails`,
}
const HOUR = 3_600_000
const five: Demand = {
  kind: 'windows',
  windows: [{ name: 'daily', quota: 5, ms: 24 * HOUR, algorithm: 'sliding-window' }],
  lease: false,
}
const fiveAnHour: Demand = { kind: 'meter', quota: 5, ms: HOUR, blockMs: 0 }

t.test('a flood of keys of one rule changes no answer of another, used up or not', async t => {
  const demands = [
    [RULES.mails, RULES.pages, five],
    [RULES.logins, RULES.devices, fiveAnHour],
  ] as const
  for (const [kept, flooded, demand] of demands) {
    const store = new MemoryStore(() => clock.at)
    for (let i = 0; i < 5; i += 1) take(store, kept(0), demand)
    for (let i = 0; i < 2; i += 1) take(store, kept(1), demand)
    for (let i = 0; i < 310_000; i += 1) take(store, flooded(i), demand)
    t.match(take(store, kept(0), demand), { granted: false }, 'what is used up stays used up')
    t.match(take(store, kept(1), demand), { granted: true, counts: [{ used: 3 }] })
    await store.close()
  }
})

t.test('a sender with any number of keys gets no new quota for one that is nearly used up', async t => {
  for (const [keyOf, demand] of [
    [RULES.pages, five],
    [RULES.devices, fiveAnHour],
  ] as const) {
    const store = new MemoryStore(() => clock.at)
    for (let i = 0; i < 4; i += 1) take(store, keyOf(0), demand)
    for (let i = 1; i < 310_000; i += 1) take(store, keyOf(i), demand)
    t.match(take(store, keyOf(0), demand), { counts: [{ used: 5 }] })
    t.match(take(store, keyOf(0), demand), { granted: false })
    t.match(take(store, keyOf(1), demand), { counts: [{ used: 1 }] }, 'keys with quota left are forgotten')
    await store.close()
  }
})

t.test('a rule within its share of a bounded map loses no key, and the map stays bounded', async () => {
  const traffic = fc.record({
    rule: fc.nat(3),
    key: fc.nat(200),
    use: fc.constantFrom<Use[]>('little', 'most', 'blocked'),
    deletes: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.array(traffic, { maxLength: 400 }), fc.nat(25), (operations, own) => {
      const map = new BoundedMap<number>(100)
      const keyOf = (i: number) => `sluice:1:{p${i}}:e:own:rule`
      for (let i = 0; i < own; i += 1) map.set(keyOf(i), i)
      // With three other rules, each has a share of 25.
      for (const { rule, key, use, deletes } of operations) {
        const name = `sluice:1:{p${key}}:e:other:rule-${rule % 3}`
        if (deletes === 0) map.delete(name)
        else map.set(name, key, use)
        if (map.size > 100) return false
      }
      return Array.from({ length: own }, (_, i) => map.get(keyOf(i)) === i).every(Boolean)
    }),
  )
})

t.test('a thousand rules share one bound, and a key costs the same however many rules there are', async t => {
  const map = new BoundedMap<number>(10_000)
  for (let rule = 0; rule < 1000; rule += 1) {
    for (let i = 0; i < 20; i += 1) map.set(`sluice:1:{p${i}}:e:kind:rule-${rule}`, i)
  }
  t.equal(map.size, 10_000)
  for (let i = 0; i < 20_000; i += 1) map.set(`sluice:1:{p${i}}:e:kind:rule-7`, i)
  t.equal(map.size, 10_000)
  t.equal(map.get('sluice:1:{p19}:e:kind:rule-900'), 19)
})
