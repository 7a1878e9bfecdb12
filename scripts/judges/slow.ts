/** slowhttptest's modes against the gateway: it must keep serving others, and close held connections in time. */
import { existsSync, readFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { finish } from '../../test/helpers/launch.js'
import { Missing, needs } from './install.js'
import { type Judge, listening, type Place, startGateway } from './judge.js'

const LIMIT_S = 2
/** A client may hold 1,000 connections, and the honest client shares the attacker's address. */
const RATE = 200
const LENGTH_S = 20
/** From the start of the last connection: its timeout, its closing, and slack for a busy machine. */
const CLOSED_WITHIN_S = 3 * LIMIT_S + 6
const HONEST_WITHIN_MS = 5_000
/** More than the kernel buffers for a client that does not read. */
const BIG = Buffer.alloc(6 * 1024 * 1024, 'x')
/** Connections of the honest client and of slowhttptest's own probe. */
const FEW = 3

interface Mode {
  readonly what: string
  readonly path: string
  readonly connections: number
  readonly args: readonly string[]
}

/**
 * The attackers pause longer than the limits allow, except that heads trickle steadily; these must be cut all the same.
 */
const MODES: Record<string, Mode> = {
  '-H': { what: 'slow heads', path: '/', connections: 400, args: ['-i', '1', '-x', '24'] },
  '-B': { what: 'slow bodies', path: '/', connections: 400, args: ['-i', '5', '-s', '8192', '-x', '10'] },
  '-R': { what: 'many ranges', path: '/', connections: 400, args: ['-a', '5', '-b', '3000'] },
  '-X': {
    what: 'slow readers',
    path: '/big',
    connections: 200,
    args: ['-w', '512', '-y', '1024', '-n', '5', '-z', '32', '-k', '3'],
  },
}

/** A row for each mode, and a sentence for each fault. */
export const judgeSlow: Judge = async (t, place) => {
  needs('slowhttptest', 'slowhttptest is not here: apt-get install slowhttptest')
  if (!existsSync('/proc/net/tcp')) throw new Missing('connections are counted by /proc/net/tcp, as on Linux')
  const upstream = createServer((req, res) => {
    req.resume().on('error', () => undefined)
    res.on('error', () => undefined)
    req.on('end', () => res.end(req.url === '/big' ? BIG : 'done'))
  })
  const port = await listening(t, upstream)
  t.teardown(() => upstream.closeAllConnections())
  const limits = { headTimeout: `${LIMIT_S}s`, idle: `${LIMIT_S}s` }
  const gateway = await startGateway(t, place, port, limits)
  const [rows, faults]: [string[][], string[]] = [[], []]
  for (const [name, mode] of Object.entries(MODES)) {
    const seen = await attack(name, mode, place, gateway.port)
    rows.push([
      `slowhttptest ${name}, ${mode.what}`,
      `${mode.connections} connections, ${seen.most} at once`,
      `honest requests: ${seen.served} of ${seen.asked}, slowest ${Math.round(seen.slowest)} ms`,
      `all closed after ${seen.closedAfter} s`,
      seen.faults.length === 0 ? 'available, closed in time' : `${seen.faults.length} faults`,
    ])
    faults.push(...seen.faults.map(text => `slowhttptest ${name}: ${text}`))
    if (gateway.isRunning()) continue
    faults.push(`slowhttptest ${name}: the gateway ended`)
    break
  }
  return { rows, faults }
}

async function attack(name: string, { path, args, connections }: Mode, place: Place, port: number) {
  const prefix = join(place.path, `slow${name}`)
  const target = ['-u', `http://127.0.0.1:${port}${path}`, '-c', connections, '-r', RATE, '-l', LENGTH_S]
  const options = [name, ...target, '-p', HONEST_WITHIN_MS / 1000, '-g', '-o', prefix, ...args].map(String)
  const begun = performance.now()
  const honest = { asked: 0, served: 0, slowest: 0 }
  const held = { most: 0, lastMs: 0 }
  let isOn = true
  const attacking = finish('slowhttptest', options, { seconds: LENGTH_S + 20 }).finally(() => {
    isOn = false
  })
  while (isOn) {
    const asked = performance.now()
    honest.asked += 1
    if ((await ask(port)) === 200) honest.served += 1
    honest.slowest = Math.max(honest.slowest, performance.now() - asked)
    const open = openAt(port)
    held.most = Math.max(held.most, open)
    if (open > FEW) held.lastMs = performance.now() - begun
    await sleep(100)
  }
  const { isCut } = await attacking
  const closedAfter = Math.ceil(held.lastMs / 1000)
  const faults: string[] = []
  if (isCut) faults.push('it did not come to its end')
  if (honest.served < honest.asked)
    faults.push(`${honest.asked - honest.served} honest requests were not served`)
  if (honest.slowest > HONEST_WITHIN_MS)
    faults.push(`an honest request took ${Math.round(honest.slowest)} ms`)
  if (secondsAway(`${prefix}.csv`) > 0) faults.push('its own probe was not answered')
  if (closedAfter > connections / RATE + CLOSED_WITHIN_S)
    faults.push(`connections were open for ${closedAfter} s`)
  return { ...honest, most: held.most, closedAfter, faults }
}

/** Connections of a port that the kernel still holds, except those in TIME_WAIT. */
function openAt(port: number): number {
  const LISTEN = '0A'
  const TIME_WAIT = '06'
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(suffix) && state !== LISTEN && state !== TIME_WAIT).length
}

/**
 * Seconds without service: lines, one a second (Seconds, Closed, Pending, Connected, Service Available), that end in 0.
 */
function secondsAway(csv: string): number {
  const lines = readFileSync(csv, 'utf8').trim().split('\n').slice(1)
  return lines.filter(line => line.split(',')[4] === '0').length
}

function ask(port: number): Promise<number | undefined> {
  return new Promise(resolve => {
    const asked = get({ host: '127.0.0.1', port, path: '/', agent: false, timeout: 5_000 }, answer => {
      answer.resume().on('close', () => resolve(answer.statusCode))
    })
    asked.on('timeout', () => asked.destroy()).on('error', () => resolve(0))
  })
}
