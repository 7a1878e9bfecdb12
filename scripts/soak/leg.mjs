/** One form of the gateway under soak: what it holds before and after, and what went wrong. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, say } from '../lib/run.mjs'
import { compare, hasGrown, table } from './held.mjs'
import { work } from './work.mjs'

const WARM_UP_MS = 6_000
/** Longer than any timeout of the configuration, and longer than connections to the upstream are kept. */
const QUIET_MS = 8_000
const SETTLE_MS = 45_000

/** @throws {Failure} unless everything that was taken is released */
export async function soak(gateway, redis, seconds) {
  // So that the baseline includes what every running gateway holds.
  say(`warming up for ${WARM_UP_MS / 1000} s ...`)
  await trouble(gateway, redis, WARM_UP_MS)
  await sleep(QUIET_MS)
  const before = await reportOf(gateway, redis)
  say(`soaking for ${seconds} s ...`)
  const { results, leftWaiting, reloads, losses } = await trouble(gateway, redis, seconds * 1000)
  const after = await settle(gateway, redis, before)
  const rows = compare(before, after)
  console.log(table(['client', 'times', 'statuses (0: cut)'], results.map(told)))
  console.log(`${reloads} reloads, ${losses} losses of Redis\n`)
  console.log(table(['held by the gateway', 'before', 'after', ''], rows))

  const status = await gateway.ask('/')
  const code = await gateway.stop()
  const faults = [
    ...leftWaiting.map(name => `a client had no end of its request: ${name}`),
    ...rows.filter(hasGrown).map(([what]) => `${what} did not come back to the base line`),
    ...(status === 200 ? [] : [`a request afterwards was answered ${status}`]),
    ...(code === 0 ? [] : [`the gateway ended with ${code}`]),
    ...gateway.faults.slice(0, 5).map(line => `logged: ${line}`),
    ...results.flatMap(dishonoured),
  ]
  if (faults.length > 0) throw new Failure(faults.join('\n'))
  say('everything that was taken was given back')
}

/** All clients at once, a reload every second, and Redis paused or killed every few seconds. */
async function trouble(gateway, redis, ms) {
  const end = performance.now() + ms
  const isOn = () => performance.now() < end && gateway.isRunning()
  const counts = { reloads: 0, losses: 0 }
  const reloading = (async () => {
    while (isOn()) {
      gateway.reload()
      counts.reloads += 1
      await sleep(1_000)
    }
  })()
  const losing = (async () => {
    while (isOn()) {
      await sleep(2_000)
      if (counts.losses % 2 === 0) await redis.pauseFor(1_500)
      else await redis.loseFor(1_500)
      counts.losses += 1
    }
  })()
  const [result] = await Promise.all([work(gateway.url, isOn), reloading, losing])
  return { ...result, ...counts }
}

async function reportOf(gateway, redis) {
  return { ...(await gateway.report()), keys: redis.keys() }
}

/** What the gateway holds once it is idle: the first report like `wanted`, or the last one in time. */
async function settle(gateway, redis, wanted) {
  const end = performance.now() + SETTLE_MS
  for (;;) {
    await sleep(1_000)
    const report = await reportOf(gateway, redis)
    if (!compare(wanted, report).some(hasGrown) || performance.now() > end) return report
  }
}

function told({ client, times, statuses }) {
  const counts = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`)
  return [client.name, String(times), counts.join(', ')]
}

function dishonoured({ client, statuses }) {
  if (!client.isHonest) return []
  const others = Object.keys(statuses).filter(status => status !== '200')
  return others.map(status => `${client.name}: a client was answered ${status}`)
}
