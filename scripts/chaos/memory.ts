/** How much memory clients can make a gateway hold with what they begin and do not finish. */
import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCertificate } from '../../test/helpers/certificates.js'
import { gatewayProcess } from '../../test/helpers/gateway-process.js'
import { type Scope, scoped, temporaryFolder } from '../../test/helpers/scope.js'
import { inProject } from '../lib/run.mjs'
import { KINDS, type Kind, TINY_MS, UPSTREAMS } from './memory-clients.js'
import { cell, type Measured, type Part, verdictRow } from './row.js'

const MIB = 1024 * 1024
/** What deploy/kubernetes sets, less a fifth. */
const MOST_MIB = 614
/** In a container of 768 MiB, Node.js chooses this for its heap. */
const NODE_OPTIONS = '--max-old-space-size=384'
/** Names of the columns, with the number of addresses and of connections. */
const CLIENTS: Record<string, readonly [addresses: number, connections: number]> = {
  'one address': [1, 1000],
  'a thousand addresses': [1000, 4000],
}
const MOST_MS = 12_000
const AT_ONCE = 100
const PAUSE_MS = 50

const NOTE = `One gateway with the files of \`config/\`, four upstreams and a rule keyed by \`email-or-flow\`, and the heap of a
container of 768 MiB (\`${NODE_OPTIONS}\`). Clients open as many connections as they get within ${MOST_MS / 1000} s (${TINY_MS / 1000} s where
an upstream has to be filled before tiny pieces follow), at most 1000 from one address
and 4000 from a thousand, over HTTP/2 with up to 100 requests each, and finish nothing. HTTP/2 is Sluice's own
(\`http2: own\`, the default). Shown is the most resident memory.`

/** The short form measures nothing, as it takes minutes. */
export const memorySections: Part = async ({ short, wants }) => {
  const kinds = Object.entries(KINDS).filter(([name]) => !short && wants(`memory / ${name}`))
  if (kinds.length === 0) return []
  const rows = []
  for (const [name, kind] of kinds) rows.push(await verdictRow('memory', name, () => measure(kind)))
  return [{ title: 'Memory', note: NOTE, columns: Object.keys(CLIENTS), rows }]
}

async function measure(kind: Kind): Promise<Measured> {
  const cells = []
  const opened = []
  for (const [addresses, connections] of Object.values(CLIENTS)) {
    const { most, open } = await scoped(t => hold(t, kind, addresses, connections))
    cells.push(cell(`${most} MiB`, `${MOST_MIB} MiB`, most <= MOST_MIB))
    opened.push(open)
  }
  return { cells, lateMs: 0, more: `${opened.join(' and ')} connections; ` }
}

/** Resolves to the most memory in MiB, and the number of connections that were opened. */
async function hold(t: Scope, kind: Kind, addresses: number, allowed: number) {
  const { tls = false, connections: useful = Infinity, lastsMs = MOST_MS, open } = kind
  const { gateway, ca } = await startGateway(t, await startApp(t), tls)
  const port = Number(new URL(gateway.url).port)
  const connections = Math.min(useful, allowed)
  const closers: (() => unknown)[] = []
  t.teardown(() => {
    for (const close of closers) close()
  })
  let most = 0
  const until = performance.now() + lastsMs
  while (performance.now() < until) {
    for (let i = 0; i < AT_ONCE && closers.length < connections; i++) {
      const n = closers.length
      closers.push(open({ n, port, address: addressOf(n % addresses), ca }))
    }
    await sleep(PAUSE_MS)
    most = Math.max(most, Math.round((await gateway.resident()) / MIB))
  }
  return { most, open: closers.length }
}

const addressOf = (at: number) => `127.0.${1 + Math.floor(at / 250)}.${1 + (at % 250)}`

/** The shipped configuration with further upstreams. */
async function startGateway(t: Scope, app: string, tls: boolean) {
  const folder = temporaryFolder(t, 'memory')
  cpSync(inProject('config'), folder, { recursive: true, filter: from => !from.endsWith('.ts') })
  const certificate = tls ? makeCertificate(folder, 'localhost') : undefined
  const file = join(folder, 'gateway.yaml')
  const yaml = readFileSync(file, 'utf8')
    .replace(
      /^(listen: [^#\n]*) \} #/m,
      `$1${tls ? ', tls: { cert: localhost.crt, key: localhost.key }' : ''} } #`,
    )
    .replace(
      '\nupstreams:\n',
      `\nupstreams:\n${UPSTREAMS.map(name => `  ${name}: { url: "${app}" }\n`).join('')}`,
    )
    .replace(
      /\nroutes:.*\n/,
      `\nroutes:\n${UPSTREAMS.map(name => `  - { path: /${name}/**, upstream: ${name} }\n`).join('')}`,
    )
  writeFileSync(file, yaml)
  writeFileSync(
    join(folder, 'policies', 'mail.yaml'),
    'version: 1\nkind: in-flight\nrules: [{ id: mail, match: [POST /app/mail], key: [project, path, email-or-flow], missing: skip, max: 1, mode: enforce }]\n',
  )
  const gateway = await gatewayProcess(t, folder, { PORT: '0', ADMIN_PORT: '0', NODE_OPTIONS })
  return { gateway, ca: certificate?.cert }
}

const SWITCH =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

/** An upstream that answers /…/large with many bytes, sends into WebSockets of /app/socket, and reads nothing. */
async function startApp(t: Scope): Promise<string> {
  const large = Buffer.alloc(16 * MIB)
  const frame = Buffer.alloc(64 * 1024)
  frame.set([0x82, 126, 0xff, 0xfc])
  const server = createServer((req, res) => {
    if (req.url?.endsWith('/large')) res.end(large)
  })
  server.on('upgrade', (req, socket) => {
    socket.on('error', () => undefined)
    if (req.url !== '/app/socket') return
    socket.write(SWITCH)
    for (let i = 0; i < 32; i++) socket.write(frame)
  })
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
