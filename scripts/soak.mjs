/**
 * `npm run soak [-- --seconds 60]`: aborts, resets, slow readers, WebSockets, slots, reloads and a Redis that pauses and
 * dies, against the built gateway. Prints what it holds before and after, and fails unless both are the same.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from './bench/processes.mjs'
import { Failure, onPath, say, script } from './lib/run.mjs'
import { CLIENTS, work } from './soak/clients.mjs'
import { startGateway } from './soak/gateway.mjs'
import { startUpstream } from './soak/upstream.mjs'

const MB = 1024 * 1024
const WARM_UP_MS = 8_000
const SETTLE_MS = 45_000
/** Objects that nothing is done with any more: the last of their kind may stay until the next one takes their place. */
const OBJECTS_MAY_GROW = 4
/** Memory after a collection: the code that was compiled meanwhile (3 MB), and caches with a bound. */
const HEAP_MAY_GROW = 8 * MB
/** Pages that Node keeps for later: up to 48 MB for young objects, and the buffers of slow readers. */
const RSS_MAY_GROW = 100 * MB

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '600' } } })
const seconds = Number(values.seconds)

await script(async () => {
  if (!(seconds > 0)) throw new Failure('--seconds takes a positive number')
  if (!onPath('redis-server')) throw new Failure('The soak needs redis-server: apt-get install redis-server')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-soak-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  // What was started ends with this process, whatever ends it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  const redis = startRedis(folder, await freePort())
  const upstream = await startUpstream()
  let gateway
  try {
    gateway = await startGateway(folder, { upstream: upstream.url, redis: redis.url })
    await soak(gateway, redis)
  } finally {
    gateway?.kill()
    redis.stop()
    upstream.stop()
  }
})

async function soak(gateway, redis) {
  say(
    `warming up for ${WARM_UP_MS / 1000} s, so that the base line holds what every running gateway holds ...`,
  )
  await trouble(gateway, redis, WARM_UP_MS)
  const before = await settle(gateway)
  say(`soaking for ${seconds} s ...`)
  const { done, statuses, leftWaiting, reloads, losses } = await trouble(gateway, redis, seconds * 1000)
  const after = await settle(gateway, before)
  const rows = compare(before, after)
  console.log(table(['client', 'times', 'statuses (0: cut)'], rowsOf(done, statuses)))
  console.log(`${reloads} reloads, ${losses} losses of Redis\n`)
  console.log(table(['held by the gateway', 'before', 'after', ''], rows))

  const { status } = await fetch(gateway.url)
  const code = await gateway.stop()
  const faults = [
    ...leftWaiting.map(name => `a client had no end of its request: ${name}`),
    ...rows.filter(row => row[3] !== 'ok').map(([what]) => `${what} did not come back to the base line`),
    ...(status === 200 ? [] : [`a request afterwards was answered ${status}`]),
    ...(code === 0 ? [] : [`the gateway ended with ${code}`]),
    ...gateway.faults.slice(0, 5).map(line => `logged: ${line}`),
    ...Object.keys(statuses.honest ?? {})
      .filter(answer => answer !== '200')
      .map(answer => `an honest client was answered ${answer}`),
  ]
  if (faults.length > 0) throw new Failure(faults.join('\n'))
  say('everything that was taken was given back')
}

/** All clients at once, a reload every second, and Redis paused or killed every few. */
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

/** What the gateway holds once nothing is under way: the first report like `wanted`, or the last one in time. */
async function settle(gateway, wanted) {
  const end = performance.now() + SETTLE_MS
  // Longer than any time limit of the configuration, and than connections to the upstream are kept.
  await sleep(8_000)
  for (;;) {
    const report = await gateway.report()
    const isDone = wanted === undefined || compare(wanted, report).every(row => row[3] === 'ok')
    if (isDone || performance.now() > end) return report
    await sleep(1_000)
  }
}

function compare(before, after) {
  const kinds = new Set([...Object.keys(before.resources), ...Object.keys(after.resources)])
  const megabytes = bytes => `${(bytes / MB).toFixed(1)} MB`
  const row = (what, was, is, limit, text = String) => [
    what,
    text(was),
    text(is),
    is <= limit ? 'ok' : 'grown',
  ]
  return [
    ...[...kinds].map(kind => {
      const was = before.resources[kind] ?? 0
      return row(kind, was, after.resources[kind] ?? 0, was)
    }),
    ...Object.entries(after.objects).map(([what, is]) => {
      const was = before.objects[what]
      return row(`${what}, as objects`, was, is, was + OBJECTS_MAY_GROW)
    }),
    row('slots in flight', before.slots, after.slots, 0),
    row('heap', before.heapUsed, after.heapUsed, before.heapUsed + HEAP_MAY_GROW, megabytes),
    row('buffers', before.external, after.external, before.external + HEAP_MAY_GROW, megabytes),
    row('resident memory', before.rss, after.rss, before.rss + RSS_MAY_GROW, megabytes),
  ]
}

function rowsOf(done, statuses) {
  return Object.keys(CLIENTS).map(name => [name, String(done[name]), statusText(statuses[name] ?? {})])
}

function statusText(counts) {
  return Object.entries(counts)
    .map(([status, count]) => `${status}: ${count}`)
    .join(', ')
}

function table(heads, rows) {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map(row => row[i].length)))
  return [heads, ...rows]
    .map(row =>
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function startRedis(folder, port) {
  let child
  const start = () => {
    const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
    child = spawn('redis-server', args.map(String), { stdio: 'ignore' })
  }
  start()
  process.on('exit', () => child.kill('SIGKILL'))
  return {
    url: `redis://127.0.0.1:${port}`,
    /** It accepts connections, and answers nothing. */
    async pauseFor(ms) {
      child.kill('SIGSTOP')
      await sleep(ms)
      child.kill('SIGCONT')
    },
    /** It is gone, and comes back empty. */
    async loseFor(ms) {
      child.kill('SIGKILL')
      await sleep(ms)
      start()
    },
    stop: () => child.kill('SIGKILL'),
  }
}
