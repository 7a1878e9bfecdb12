/** What one HTTP/2 connection can cost a gateway: by frames that cost its client nothing, and by what it leaves unfinished. */
import { once } from 'node:events'
import { get } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { FLOODS, type FloodAttack } from '../../test/gateway/http2/server/flood-attacks.js'
import { HOARDS, type HoardAttack } from '../../test/gateway/http2/server/hoard-attacks.js'
import { FrameClient } from '../../test/gateway/listen/frames.js'
import { makeCertificate } from '../../test/helpers/certificates.js'
import {
  type GatewayProcess,
  gatewayProcess,
  oneUpstream,
  writeConfig,
} from '../../test/helpers/gateway-process.js'
import { startApp } from '../../test/helpers/http.js'
import { type Scope, scoped, temporaryFolder } from '../../test/helpers/scope.js'
import { cpuUs } from '../bench/machine.js'
import { cell, complaintsOf, type Measured, type Part, timeCell, verdictRow, waitedMs } from './row.js'

const MIB = 1024 * 1024
/** Each from an address of its own: what is limited for a client on all its connections is not what is measured. */
const CLIENTS = 20
/** Together they stay below the 1024 requests that one address of an upstream gets at a time. */
const HOARDERS = 8
const MOST_CPU_MS = 100
const MOST_MIB = 8
const HONEST_MS = 500
const HOLD_MS = 1_500

const NOTE = `One gateway with TLS, and floods on ${CLIENTS} connections from as many addresses, one after the other, and what is not
finished on ${HOARDERS} at once. HTTP/2 is Sluice's own (\`http2: own\`, the default). Shown is what one of them costs, with its
handshake; memory that the process has from earlier connections is used again and does not show. A thousand idle connections at
once add 46 kB each (56 kB with \`http2: node\`). Honest requests are sent meanwhile.`

export const http2Sections: Part = async ({ short, wants }) => {
  const chosen = <T extends { readonly what: string }>(attacks: readonly T[]) =>
    attacks.filter(({ what }) => !short && wants(`http2 / ${what}`))
  const floods = chosen(FLOODS)
  const hoards = chosen(HOARDS)
  if (floods.length + hoards.length === 0) return []
  return scoped(async t => {
    const place = await start(t)
    await flood(place, { what: 'to warm up', flood: 'pings', bytes: Buffer.alloc(0) })
    const rows = []
    for (const attack of floods)
      rows.push(await verdictRow('http2', attack.what, () => measure(place, p => flood(p, attack))))
    for (const attack of hoards)
      rows.push(await verdictRow('http2', attack.what, () => measure(place, p => hoard(p, attack))))
    return [{ title: 'One HTTP/2 connection', note: NOTE, columns: COLUMNS, rows }]
  })
}

const COLUMNS = ['its end', 'CPU', 'memory', 'honest requests meanwhile']

interface Place {
  readonly gateway: GatewayProcess
  readonly port: number
  /** The number of the last client. */
  clients: number
}

/** `end` is how the connections ended, `most` the most memory in bytes that they took together. */
interface Outcome {
  readonly end: string
  readonly promised: string
  readonly most: number
  readonly clients: number
}

async function start(t: Scope): Promise<Place> {
  const big = Buffer.alloc(MIB)
  const app = await startApp(t, (req, res) => {
    if (req.url === '/big') res.end(big)
    else if (req.url !== '/wait') req.resume().on('end', () => res.end('done'))
  })
  const { certFile, keyFile } = makeCertificate(temporaryFolder(t, 'http2'), 'acme.localhost')
  const config = { listen: { tls: { cert: certFile, key: keyFile } }, ...oneUpstream(app) }
  const gateway = await gatewayProcess(t, writeConfig(t, config, {}))
  return { gateway, port: Number(new URL(gateway.url).port), clients: 0 }
}

async function measure(place: Place, attack: (place: Place) => Promise<Outcome>): Promise<Measured> {
  const { gateway } = place
  const waited = waitedMs([gateway])
  let longest = 0
  let isOver = false
  const honest = async () => {
    while (!isOver) {
      const sentAt = performance.now()
      const sent = get(gateway.url, {
        headers: { host: 'acme.localhost' },
        agent: false,
        rejectUnauthorized: false,
      })
      const [{ statusCode: status }] = await once(sent, 'response')
      if (status !== 200) throw new Error(`an honest request got ${status}`)
      longest = Math.max(longest, performance.now() - sentAt)
      await sleep(100)
    }
  }
  const asking = honest()
  const cpu = cpuUs(gateway.pid)
  const { end, promised, most, clients } = await attack(place)
  const ms = (cpuUs(gateway.pid) - cpu) / 1000 / clients
  isOver = true
  await asking
  const mib = most / MIB / clients
  const lateMs = waitedMs([gateway]) - waited
  const complaints = complaintsOf(gateway)
  return {
    cells: [
      cell(end, promised, end === promised && complaints.length === 0),
      cell(`${ms.toFixed(1)} ms`, `${MOST_CPU_MS} ms`, ms <= MOST_CPU_MS),
      cell(`${mib.toFixed(2)} MiB`, `${MOST_MIB} MiB`, mib <= MOST_MIB),
      timeCell(longest, HONEST_MS, lateMs),
    ],
    lateMs,
  }
}

/** Each client sends its bytes, and goes on when it is told to stop. */
async function flood(place: Place, { flood, bytes }: FloodAttack): Promise<Outcome> {
  const before = await place.gateway.resident()
  let most = 0
  let ended = 0
  for (let i = 0; i < CLIENTS; i++) {
    await scoped(async t => {
      const client = await openClient(t, place)
      for (let n = 0; n < 20 && !client.closed; n++) {
        client.send(bytes)
        await sleep(5)
      }
      most = Math.max(most, (await place.gateway.resident()) - before)
      if (client.closed) ended += 1
    })
  }
  return {
    end: `${ended} of ${CLIENTS} by ${flood}`,
    promised: `${CLIENTS} of ${CLIENTS} by ${flood}`,
    most,
    clients: CLIENTS,
  }
}

/** All clients begin something, and leave it there. */
async function hoard(place: Place, { bytes, reads, first }: HoardAttack): Promise<Outcome> {
  const before = await place.gateway.resident()
  let most = 0
  await scoped(async t => {
    for (let i = 0; i < HOARDERS; i++) {
      const client = await openClient(t, place, first)
      client.send(bytes)
      if (!reads) client.socket.pause()
    }
    const until = performance.now() + HOLD_MS
    while (performance.now() < until) {
      await sleep(50)
      most = Math.max(most, (await place.gateway.resident()) - before)
    }
  })
  return { end: 'stays', promised: 'stays', most, clients: HOARDERS }
}

function openClient(t: Scope, place: Place, first?: Buffer): Promise<FrameClient> {
  const n = place.clients++
  const localAddress = `127.0.${1 + Math.floor(n / 250)}.${1 + (n % 250)}`
  return FrameClient.open(t, place.port, { localAddress, ...(first && { first }) })
}
