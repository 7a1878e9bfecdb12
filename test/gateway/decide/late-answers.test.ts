/** A Redis answer after the deadline: what it charged is given back, and no client gets a second quota. */
import t, { type Test } from 'tap'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { Demand } from '../../../gateway/demand.js'
import { faultProxy } from '../../helpers/faults.js'
import { redisUrl } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const QUOTA = 20
const INSTANCES = 2
const DEADLINE_MS = 150

/** A gateway's store whose connection to Redis can be slowed down. */
async function gatewayOn(t: Test, url: string) {
  const { port } = new URL(url)
  const proxy = await faultProxy(Number(port))
  const lines: string[] = []
  const late: true[] = []
  const write = (_fields: object, message: string) => void lines.push(message)
  const log = { debug() {}, info: write, warn: write, error: write }
  const hooks = { failed() {}, late: () => void late.push(true), awayChanged() {} }
  const settings = {
    redis: `redis://127.0.0.1:${proxy.port}`,
    deadline: DEADLINE_MS,
    instances: INSTANCES,
    onError: 'local',
  } as const
  const { store } = await openStore(settings, log, hooks)
  t.teardown(async () => {
    await store.close()
    await proxy.stop()
  })
  const ask = async (one: Ask, times = 1): Promise<Answer[]> => {
    const all = Array.from({ length: times }, async () => (await store.take([one], 'holder'))[0] as Answer)
    return Promise.all(all)
  }
  return { ask, store, proxy, lines, late: () => late.length }
}

const granted = (answers: readonly Answer[]) => answers.filter(answer => answer.granted).length

const demands: Record<string, Demand> = {
  windows: {
    kind: 'windows',
    windows: [{ name: 'sustained', quota: QUOTA, ms: 60_000, algorithm: 'sliding-window' }],
    lease: false,
  },
  meter: { kind: 'meter', quota: QUOTA, ms: 60_000, blockMs: 0 },
}

for (const [kind, demand] of Object.entries(demands)) {
  t.test(`${kind}: a late call admits at most this instance's share of what was left`, async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const gateways = [await gatewayOn(t, url), await gatewayOn(t, url)]
    const ask: Ask = { key: `sluice:1:{late}:e:${kind}`, demand, group: 0, onStoreError: 'local' }
    for (let i = 0; i < 16; i += 1) {
      const [answer] = await (gateways[i % 2] as (typeof gateways)[0]).ask(ask)
      t.match(answer, { granted: true, store: 'redis' })
    }
    const admitted = await Promise.all(
      gateways.map(async ({ ask: request, proxy }) => {
        await proxy.set({ kind: 'latency', ms: DEADLINE_MS })
        return granted(await request(ask, 8))
      }),
    )
    // One was told that 4 were left, the other 5: each may use half of its number.
    t.strictSame(admitted, [2, 2], 'each instance admits its share only')
    for (const { proxy } of gateways) await proxy.set({ kind: 'pass' })
    const [one] = gateways as [(typeof gateways)[0]]
    await waitUntil('both late answers', () => gateways.every(({ late }) => late() === 1))
    t.matchOnly(one.lines, [/answered after the deadline/])
    // What a gateway admitted by itself is charged with its next call.
    const used = async ({ store }: (typeof gateways)[0]) => (await store.peek([ask]))[0]?.counts[0]?.used
    await waitUntil('both to be charged', async () => {
      const counts = await Promise.all(gateways.map(used))
      return kind === 'meter' || counts.every(count => count === QUOTA)
    })
    // A full meter counts no further: what one gateway charges is lost when the other's late charge has filled it.
    const more = granted(await one.ask(ask, 8))
    t.ok(more <= (kind === 'meter' ? 4 : 0), `no more than the quota is admitted in all: ${more} more`)
  })
}

const SECONDS = 5

for (const [kind, demand] of Object.entries<Demand>({
  windows: {
    kind: 'windows',
    windows: [{ name: 'sustained', quota: QUOTA, ms: 1_000, algorithm: 'sliding-window' }],
    lease: false,
  },
  meter: { kind: 'meter', quota: QUOTA, ms: 1_000, blockMs: 0 },
})) {
  t.test(`${kind}: one late call a second adds at most one instance’s share to each window`, async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const gateways = [await gatewayOn(t, url), await gatewayOn(t, url)]
    const ask: Ask = { key: `sluice:1:{often}:e:${kind}`, demand, group: 0, onStoreError: 'local' }
    const begun = performance.now()
    const end = begun + SECONDS * 1_000
    let admitted = 0
    await Promise.all(
      gateways.map(async ({ ask: request, proxy }, i) => {
        // One gateway at a time, so that calls are late for one and in time for the other.
        let lateAt = begun + 300 + i * 400
        while (performance.now() < end) {
          const isLate = performance.now() > lateAt
          if (isLate) {
            lateAt += 1_000
            await proxy.set({ kind: 'latency', ms: DEADLINE_MS })
          }
          admitted += granted(await request(ask, 8))
          if (isLate) await proxy.set({ kind: 'pass' })
          await sleep(10)
        }
      }),
    )
    t.ok(
      gateways.every(({ late }) => late() >= SECONDS - 2),
      'both gateways had late calls',
    )
    const most = (SECONDS + 1) * (QUOTA + QUOTA / INSTANCES)
    t.ok(admitted <= most, `${admitted} in ${SECONDS} s, and a window that had begun before: at most ${most}`)
    // On a busy machine more calls are late, and each of them counts against the instance's share.
    t.ok(admitted >= (SECONDS * QUOTA) / 4, `${admitted}: the quota is usable`)
    t.comment(`${admitted} admitted`)
  })
}

for (const [kind, demand] of Object.entries(demands)) {
  t.test(`${kind}: what was admitted while Redis was away is charged there once it is back`, async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const gateways = [await gatewayOn(t, url), await gatewayOn(t, url)]
    const ask: Ask = { key: `sluice:1:{outage}:e:${kind}`, demand, group: 0, onStoreError: 'local' }
    let admitted = 0
    for (const gateway of gateways) {
      await gateway.proxy.set({ kind: 'refuse' })
      for (let i = 0; i < 15; i += 1) admitted += granted(await gateway.ask(ask))
      await gateway.proxy.set({ kind: 'pass' })
    }
    t.equal(admitted, QUOTA, 'each gateway admits half')
    for (const { ask: request } of gateways) {
      await waitUntil('Redis to count again', async () => {
        const [answer] = await request(ask)
        admitted += answer?.granted ? 1 : 0
        return answer?.store === 'redis'
      })
      admitted += granted(await request(ask, 20))
    }
    // The first gateway to reconnect may ask before the other has charged what it admitted.
    t.ok(
      admitted <= QUOTA + QUOTA / INSTANCES,
      `${admitted} of ${QUOTA}, with one gateway's part not charged yet`,
    )
    t.equal(granted(await (gateways[0] as (typeof gateways)[0]).ask(ask, 5)), 0, 'nothing is left')
  })
}

t.test('leased tokens that arrive too late stay with this instance and are not admitted twice', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const gateway = await gatewayOn(t, url)
  const windows = [{ name: 'sustained', quota: 100, ms: 60_000, algorithm: 'sliding-window' }] as const
  const demand: Demand = { kind: 'windows', windows, lease: true }
  const ask: Ask = { key: 'sluice:1:{lent}:e:x', demand, group: 0, onStoreError: 'local' }
  let admitted = 0
  let lateCalls = 0
  for (let round = 0; round < 30; round += 1) {
    const isLate = round % 10 === 5
    const [before, hasTokens] = [gateway.late(), admitted < 90]
    if (isLate) await gateway.proxy.set({ kind: 'latency', ms: DEADLINE_MS })
    admitted += granted(await gateway.ask(ask, 10))
    if (isLate) await gateway.proxy.set({ kind: 'pass' })
    // On a busy machine more calls than that of round 5 are late while there are tokens.
    if (hasTokens) lateCalls += gateway.late() - before
  }
  t.ok(admitted <= 100 + 50, `${admitted} of 100, plus at most half of what was left`)
  t.ok(
    admitted >= 100 - 10 * Math.max(1, lateCalls),
    `${admitted} of 100, after ${lateCalls} late calls with tokens left`,
  )
})
