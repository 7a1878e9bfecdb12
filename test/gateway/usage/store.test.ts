/** Usage in Redis: what arrives, though nobody hears so, is counted once. */
import fc from 'fast-check'
import t from 'tap'
import { hourOf, nameOf, rowsOf, type UsageCounts } from '../../../gateway/usage/row.js'
import { openUsageStore } from '../../../gateway/usage/store.js'
import { faultProxy } from '../../helpers/faults.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const KEEP_MS = 3_600_000
const NAME = nameOf({ project: 'a]#', plan: 'p', environment: 'e', bucket: null })
const counts = (requests: number): UsageCounts => ({
  requests,
  admitted: requests,
  refused: 0,
  cost: 2 * requests,
})

t.test('a batch whose answer came too late is not counted again', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const { hostname, port, pathname } = new URL(redis)
  const proxy = await faultProxy(Number(port), hostname)
  t.teardown(() => proxy.stop())
  const store = openUsageStore(`redis://127.0.0.1:${proxy.port}${pathname}`, log)
  t.teardown(() => store.close())
  const hour = hourOf(Date.now())
  const names = Array.from({ length: 450 }, (_, i) =>
    nameOf({ project: `p${i}`, plan: 'p', environment: 'e', bucket: 'b' }),
  )
  const batch = { hour, counts: new Map(names.map(name => [name, counts(1)])) }
  await store.add({ hour, counts: new Map([[NAME, counts(1)]]) }, KEEP_MS)
  await proxy.set({ kind: 'latency', ms: 700 })
  await t.rejects(store.add(batch, KEEP_MS), /not answered in time/, 'it arrives, and the answer is late')
  await proxy.set({ kind: 'pass' })
  await waitUntil('the batch to be stored', () =>
    store.add(batch, KEEP_MS).then(
      () => true,
      () => false,
    ),
  )
  const found = await store.read(hour)
  t.equal(found.size, 451)
  for (const name of [NAME, ...names]) t.same(found.get(name), counts(1))
})

t.test('both stores add up whatever they are given', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const batches = fc.array(
    fc.record({
      hour: fc.nat({ max: 1 }),
      writer: fc.nat({ max: 1 }),
      project: fc.constantFrom('acme', 'a"b', '#', 'ü,'),
      bucket: fc.constantFrom(null, 'all', ']'),
      requests: fc.integer({ min: 1, max: 1000 }),
    }),
    { maxLength: 20 },
  )
  let first = hourOf(Date.now()) - 1000
  await fc.assert(
    fc.asyncProperty(batches, async all => {
      first -= 2
      const [memory, ...shared] = [
        openUsageStore('', log),
        openUsageStore(redis, log),
        openUsageStore(redis, log),
      ]
      for (const { hour, writer, project, bucket, requests } of all) {
        const name = nameOf({ project, plan: 'p', environment: 'e', bucket })
        const batch = { hour: first + hour, counts: new Map([[name, counts(requests)]]) }
        await memory.add(batch, 1e12)
        await shared[writer]?.add(batch, 1e12)
      }
      for (const hour of [first, first + 1]) {
        const expected = rowsOf(hour, await memory.read(hour))
        t.same(rowsOf(hour, (await shared[0]?.read(hour)) ?? new Map()), expected)
      }
      for (const store of shared) store.close()
    }),
    { numRuns: 20 },
  )
})

t.test('hours are forgotten when their time is over', async t => {
  const store = openUsageStore('', log)
  const hour = hourOf(Date.now())
  await store.add({ hour: hour - 3, counts: new Map([[NAME, counts(1)]]) }, 5 * KEEP_MS)
  t.equal((await store.read(hour - 3)).size, 1)
  await store.add({ hour, counts: new Map([[NAME, counts(1)]]) }, KEEP_MS)
  t.equal((await store.read(hour - 3)).size, 0)
})
