/** One form of the gateway under soak: what it holds before and after, and what went wrong. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, say } from '../lib/run.mjs'
import { below, type Client, type Clients } from './clients.js'
import type { Report, SoakedGateway, SoakedRedis } from './gateway.js'
import { compare, hasGrown, table } from './held.js'
import { http1Clients } from './http1.js'
import { http2Clients } from './http2.js'

const WARM_UP_MS = 6_000
/** Longer than any timeout of the configuration, and longer than connections to the upstream stay open. */
const QUIET_MS = 8_000
const SETTLE_MS = 45_000
/** For clients still waiting at the end; the longest that any has to wait is a few timeouts of the gateway. */
const PATIENCE_MS = 60_000

/** @throws {Failure} unless everything that was taken is released */
export async function soak(gateway: SoakedGateway, redis: SoakedRedis, seconds: number): Promise<void> {
  // So that the baseline includes what every running gateway holds.
  say(`warming up for ${WARM_UP_MS / 1000} s ...`)
  await trouble(gateway, redis, WARM_UP_MS)
  await sleep(QUIET_MS)
  const before = await gateway.report()
  say(`soaking for ${seconds} s ...`)
  const { results, leftWaiting, reloads, losses } = await trouble(gateway, redis, seconds * 1000)
  const after = await settle(gateway, before)
  const rows = compare(before, after)
  const listed = results.map(({ client, times, statuses }) => {
    const counts = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`)
    return [client.name, String(times), counts.join(', ')]
  })
  console.log(table(['client', 'times', 'statuses (0: cut)'], listed))
  console.log(`${reloads} reloads, ${losses} losses of Redis\n`)
  console.log(table(['held by the gateway', 'before', 'after', ''], rows))

  const status = await gateway.ask('/')
  gateway.signal('SIGTERM')
  const [code] = (await Promise.race([gateway.exited(), patience()])) ?? []
  const faults = [
    ...leftWaiting.map(name => `a client had no end of its request: ${name}`),
    ...rows.filter(hasGrown).map(([what]) => `${what} did not come back to the base line`),
    ...(status === 200 ? [] : [`a request afterwards was answered ${status}`]),
    ...(code === 0 ? [] : [`the gateway ended with ${code}`]),
    ...gateway.faults.slice(0, 5).map(line => `logged: ${line}`),
    ...results.flatMap(wronged),
  ]
  if (faults.length > 0) throw new Failure(faults.join('\n'))
  say('everything that was taken was given back')
}

const patience = (): Promise<undefined> => sleep(PATIENCE_MS, undefined, { ref: false })

/** All clients at once, a reload every second, and Redis paused or killed every few seconds. */
async function trouble(gateway: SoakedGateway, redis: SoakedRedis, ms: number) {
  const end = performance.now() + ms
  const isOn = () => performance.now() < end && gateway.isRunning()
  const counts = { reloads: 0, losses: 0 }
  const reloading = async () => {
    while (isOn()) {
      gateway.reload()
      counts.reloads += 1
      await sleep(1_000)
    }
  }
  const losing = async () => {
    while (isOn()) {
      await sleep(2_000)
      const [lose, restore] =
        counts.losses % 2 === 0 ? [redis.pause, redis.resume] : [redis.kill, redis.restart]
      await lose()
      await sleep(1_500)
      await restore()
      counts.losses += 1
    }
  }
  const [result] = await Promise.all([work(gateway.url, isOn), reloading(), losing()])
  return { ...result, ...counts }
}

/** How often a client ran, and which statuses it got. */
interface Result {
  readonly client: Client
  times: number
  readonly statuses: Record<string, number>
}

/**
 * Runs all clients at once, HTTP/2 ones too when the gateway terminates TLS, until `until` returns false.
 *
 * @returns also the names of those left waiting
 */
async function work(url: string, until: () => boolean) {
  const kinds: Clients[] = url.startsWith('https:')
    ? [http1Clients(url), http2Clients(url)]
    : [http1Clients(url)]
  const waiting = new Set<{ name: string }>()
  const all = kinds.flatMap(({ clients }) => clients)
  const results = all.map((client): Result => ({ client, times: 0, statuses: {} }))
  const running = results.flatMap(result =>
    Array.from({ length: result.client.many }, async () => {
      while (until()) {
        const request = { name: result.client.name }
        waiting.add(request)
        const status = await result.client.act()
        waiting.delete(request)
        result.times += 1
        if (status !== undefined) result.statuses[status] = (result.statuses[status] ?? 0) + 1
        await sleep(below(10))
      }
    }),
  )
  const end = async () => {
    while (until()) await sleep(100)
    await patience()
  }
  await Promise.race([Promise.all(running), end()])
  for (const { close } of kinds) close()
  return { results, leftWaiting: [...waiting].map(({ name }) => name) }
}

/** What the gateway holds once it is idle: the first report like `wanted`, or the last one in time. */
async function settle(gateway: SoakedGateway, wanted: Report): Promise<Report> {
  const end = performance.now() + SETTLE_MS
  for (;;) {
    await sleep(1_000)
    const report = await gateway.report()
    if (!compare(wanted, report).some(hasGrown) || performance.now() > end) return report
  }
}

function wronged({ client, statuses }: Result): string[] {
  if (!client.isHonest) return []
  const others = Object.keys(statuses).filter(status => status !== '200')
  return others.map(status => `${client.name}: a client was answered ${status}`)
}
