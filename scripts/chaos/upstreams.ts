/** Upstreams that fail, each measured beside honest requests to one that works. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/helpers/child-server.js'
import { gatewayProcess, writeConfig } from '../../test/helpers/gateway-process.js'
import { send, startApp } from '../../test/helpers/http.js'
import { type Scope, scoped } from '../../test/helpers/scope.js'
import { cell, complaintsOf, type Measured, type Part, timeCell, verdictRow, waitedMs } from './row.js'

const HEAD_MS = 1_000
const IDLE_MS = 1_000
const SLACK_MS = 500
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n'
const TIMES = 10
const IN_SHORT = ['refused', 'reset before the head', 'never answers', 'half a body']

interface UpstreamFault {
  /** What the upstream does with a request; it does not listen without. */
  on?(socket: Socket): unknown
  /** The promised response; `cut` for one that ends too soon. */
  readonly answer: number | 'cut'
  readonly withinMs: number
}

const FAULTS: Record<string, UpstreamFault> = {
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

export const upstreamSections: Part = async ({ short, wants }) => {
  const faults = Object.entries(FAULTS).filter(
    ([name]) => (!short || IN_SHORT.includes(name)) && wants(`upstream / ${name}`),
  )
  if (faults.length === 0) return []
  return scoped(async t => {
    const measure = await startAll(t, faults)
    const rows = []
    for (const [i, [name, fault]] of faults.entries())
      rows.push(await verdictRow('upstream', name, () => measure(i, fault)))
    const note = `One gateway with \`timeouts: { head: ${HEAD_MS} ms, idle: ${IDLE_MS} ms }\`; ${TIMES} concurrent POST requests to the failing upstream, and honest requests to another.`
    return [{ title: 'Upstreams', note, columns: COLUMNS, rows }]
  })
}

const COLUMNS = ['clients got', 'longest response', 'honest requests meanwhile', 'slots leaked', 'warnings']

const IN_FLIGHT = `version: 1
kind: in-flight
rules: [{ id: all, match: [POST /**], key: [project], max: 1000, mode: enforce, slotTtl: 5s }]
`

/** Starts the gateway and all its upstreams; returns what measures a fault by its index. */
async function startAll(t: Scope, faults: readonly (readonly [string, UpstreamFault])[]) {
  const upstreams: Record<string, object> = {
    honest: { url: await startApp(t, (_req, res) => res.end('done')) },
  }
  const timeouts = { connect: '1s', head: `${HEAD_MS}ms`, idle: `${IDLE_MS}ms` }
  for (const [i, [, { on }]] of faults.entries()) {
    const port = on ? await startRaw(t, on) : await freePort()
    upstreams[`f${i}`] = { url: `http://127.0.0.1:${port}`, timeouts }
  }
  const routes = Object.keys(upstreams).map(upstream => ({
    path: upstream === 'honest' ? '/**' : `/${upstream}/**`,
    upstream,
  }))
  const folder = writeConfig(t, { upstreams, routes }, { 'in-flight.yaml': IN_FLIGHT })
  const gateway = await gatewayProcess(t, folder)
  const waited = () => waitedMs([gateway])
  const headers = { host: 'acme.localhost' }
  const agent = false as const
  const ask = async (path: string) => {
    const sentAt = performance.now()
    const answered = send(gateway.url + path, { method: 'POST', headers, agent })
    const status = await answered.then(
      answer => answer.status,
      () => 'cut' as const,
    )
    return { status, ms: performance.now() - sentAt }
  }
  type Asked = Awaited<ReturnType<typeof ask>>
  const statuses = (answers: readonly Asked[]) => [...new Set(answers.map(({ status }) => status))].join(', ')

  return async (index: number, { answer, withinMs }: UpstreamFault): Promise<Measured> => {
    const complained = complaintsOf(gateway).length
    const before = waited()
    const suffering = Promise.all(Array.from({ length: TIMES }, () => ask(`/f${index}/x`)))
    const beside: Asked[] = []
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
      cell(statuses(answers), answer, statuses(answers) === String(answer)),
      timeCell(longest, withinMs + SLACK_MS, lateMs),
      cell(
        `${statuses(beside)} in ${Math.round(longestBeside)} ms`,
        `200 in ${SLACK_MS} ms`,
        statuses(beside) === '200' && longestBeside - lateMs <= SLACK_MS,
      ),
      cell(slots, 0, slots === 0),
      cell(warnings, 0, warnings === 0),
    ]
    return { cells, lateMs }
  }
}

/** Calls `on` for each connection once data has arrived. */
async function startRaw(t: Scope, on: (socket: Socket) => unknown): Promise<number> {
  const open = new Set<Socket>()
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
  return (server.address() as AddressInfo).port
}
