/** Upstreams that fail, each measured beside honest requests to one that works. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../dist/test/helpers/child-server.js'
import { gatewayProcess, writeConfig } from '../../dist/test/helpers/gateway-process.js'
import { send, startApp } from '../../dist/test/helpers/http.js'
import { complaintsOf, waitedMs } from './process.mjs'
import { kept, keptInTime, verdictRow } from './row.mjs'
import { scope } from './scope.mjs'

const HEAD_MS = 1_000
const IDLE_MS = 1_000
const SLACK_MS = 500
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n'
const TIMES = 10
const IN_SHORT = ['refused', 'reset before the head', 'never answers', 'half a body']

/**
 * By name: what the upstream does with a request, the promised response ('cut' for one that ends too soon), and when.
 */
const FAULTS = {
  refused: { answer: 502, withinMs: 0 },
  'reset before the head': { on: socket => socket.resetAndDestroy(), answer: 502, withinMs: 0 },
  'reset after the head': {
    on(socket) {
      socket.write(`${HEAD}half!`)
      setTimeout(() => socket.resetAndDestroy(), 50)
    },
    answer: 'cut',
    withinMs: 50,
  },
  'slow head': {
    on: socket => setTimeout(() => socket.end(`${HEAD}0123456789`), 500),
    answer: 200,
    withinMs: 500,
  },
  'never answers': { on: () => undefined, answer: 504, withinMs: HEAD_MS },
  'half a body': { on: socket => socket.write(`${HEAD}half!`), answer: 'cut', withinMs: IDLE_MS },
  'no HTTP': { on: socket => socket.end('what is this?\r\n\r\n'), answer: 502, withinMs: 0 },
}

/** @returns the same as `redisParts` */
export async function upstreamSections({ short, wants }) {
  const faults = Object.entries(FAULTS).filter(
    ([name]) => (!short || IN_SHORT.includes(name)) && wants(`upstream / ${name}`),
  )
  if (faults.length === 0) return []
  const t = scope()
  try {
    const rows = []
    const measure = await startAll(t, faults)
    for (const [name, fault] of faults)
      rows.push(await verdictRow('upstream', name, () => measure(name, fault)))
    const note = `One gateway with \`timeouts: { head: ${HEAD_MS} ms, idle: ${IDLE_MS} ms }\`; ${TIMES} concurrent POST requests to the failing upstream, and honest requests to another.`
    return [{ title: 'Upstreams', note, columns: COLUMNS, rows }]
  } finally {
    await t.end()
  }
}

const COLUMNS = ['clients got', 'longest response', 'honest requests meanwhile', 'slots leaked', 'warnings']

async function startAll(t, faults) {
  const honest = await startApp(t, (_req, res) => res.end('done'))
  const upstreams = [`honest: { url: "${honest}" }`]
  const routes = ['{ path: /**, upstream: honest }']
  for (const [i, [, { on }]] of faults.entries()) {
    const port = on ? await startRaw(t, on) : await freePort()
    const timeouts = `timeouts: { connect: 1s, head: ${HEAD_MS}ms, idle: ${IDLE_MS}ms }`
    upstreams.push(`f${i}: { url: "http://127.0.0.1:${port}", ${timeouts} }`)
    routes.push(`{ path: /f${i}/**, upstream: f${i} }`)
  }
  const yaml = `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { ${upstreams.join(', ')} }
routes: [${routes.join(', ')}]
`
  const inFlight = `version: 1
kind: in-flight
rules: [{ id: all, match: [POST /**], key: [project], max: 1000, mode: enforce, slotTtl: 5s }]
`
  const gateway = await gatewayProcess(t, writeConfig(t, yaml, { 'in-flight.yaml': inFlight }))
  const waited = () => waitedMs([gateway])
  const headers = { host: 'acme.localhost' }
  const ask = async path => {
    const sentAt = performance.now()
    const status = await send(gateway.url + path, { method: 'POST', headers, agent: false }).then(
      answer => answer.status,
      () => 'cut',
    )
    return { status, ms: performance.now() - sentAt }
  }
  const statuses = answers => [...new Set(answers.map(({ status }) => status))].join(', ')

  return async (name, { answer, withinMs }) => {
    const index = faults.findIndex(([known]) => known === name)
    const complained = complaintsOf(gateway).length
    const before = waited()
    const suffering = Promise.all(Array.from({ length: TIMES }, () => ask(`/f${index}/x`)))
    const beside = []
    for (let i = 0; i < TIMES; i += 1) {
      beside.push(await ask('/honest'))
      await sleep(50)
    }
    const answers = await suffering
    await sleep(100)
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    const slots = Number(/^sluice_inflight\{.*\} (\d+)/m.exec(body)?.[1] ?? 0)
    const lateMs = waited() - before
    const longest = Math.max(...answers.map(({ ms }) => ms))
    const longestBeside = Math.max(...beside.map(({ ms }) => ms))
    const warnings = complaintsOf(gateway).length - complained
    const cells = [
      kept(statuses(answers), answer, statuses(answers) === String(answer)),
      keptInTime(longest, withinMs + SLACK_MS, lateMs),
      kept(
        `${statuses(beside)} in ${Math.round(longestBeside)} ms`,
        `200 in ${SLACK_MS} ms`,
        statuses(beside) === '200' && longestBeside - lateMs <= SLACK_MS,
      ),
      kept(slots, 0, slots === 0),
      kept(warnings, 0, warnings === 0),
    ]
    return { cells, lateMs }
  }
}

/** Calls `on` for each connection once data has arrived. */
async function startRaw(t, on) {
  const open = new Set()
  const server = createServer(socket => {
    open.add(socket)
    socket.on('error', () => undefined).once('close', () => open.delete(socket))
    socket.once('data', () => on(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return server.address().port
}
