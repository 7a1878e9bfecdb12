/** What counters in this process cost: little memory for each key, and a bounded amount whatever keys come. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { BoundedMap } from '../../../gateway/decide/store/bounded-map.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Algorithm, Demand } from '../../../gateway/types.js'

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

t.test('each of 100000 keys with one request costs at most 250 bytes', async t => {
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket'] as const) {
    const store = new MemoryStore(() => clock.at)
    const demand = demandOf(algorithm)
    const before = heapUsed()
    for (let i = 0; i < 100_000; i += 1) {
      clock.at += 0.1
      take(store, `sluice:1:{customer-${i}}:e:project-limits:sessions-whoami`, demand)
    }
    const bytes = (heapUsed() - before) / 100_000
    t.ok(bytes <= 250, `${algorithm}: ${bytes.toFixed(0)} bytes`)
    t.match(take(store, 'sluice:1:{customer-99999}:e:project-limits:sessions-whoami', demand), {
      counts: [{ used: 2 }, { used: 2 }],
    })
    clock.at += 130_000
    take(store, 'any', demand)
    clock.at += 130_000
    take(store, 'any', demand)
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
