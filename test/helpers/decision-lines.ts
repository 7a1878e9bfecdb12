/** Logs for tests and measurements: decision records of generated traffic, the same for the same seed. */
import { createHash } from 'node:crypto'
import type { DecisionRecord } from '../../gateway/observe/record-types.js'

export interface TrafficOptions {
  readonly lines: number
  /** Requests per second, on average. */
  readonly perSecond: number
  readonly seed?: number
  readonly start?: number
  readonly projects?: number
  readonly clients?: number
}

const START = Date.UTC(2026, 0, 5)
const PATHS = [
  '/sessions/whoami',
  '/admin/identities',
  '/self-service/recovery',
  '/self-service/registration',
  '/files/a',
]

/** A small generator of numbers from 0 to 1 (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The record of an admitted GET of project acme, with `changes`. */
export function decisionRecord(changes: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    v: 1,
    ts: '2026-01-05T00:00:00.000Z',
    id: 'request-1',
    client_request_id: null,
    traceparent: null,
    decision: 'allow',
    mode: 'enforce',
    rule: 'catch-all',
    kind: 'project-limits',
    rev: 'sha256:0123456789abcdef',
    src: 'policies/project-limits.yaml:20',
    upstream: 'app',
    project: 'acme',
    plan: 'growth',
    environment: 'production',
    method: 'GET',
    route: '*',
    path: '/files/a',
    key: 'keyofacme1234567',
    ip: '203.0.113.0/24',
    client: 'clienthash123456',
    ja3: null,
    ja4: null,
    auth: 'anonymous',
    verified: false,
    credential: 'none',
    identifier: null,
    upgrade: false,
    preflight: false,
    parts: {},
    counters: [
      { policy: 'catch-all.burst', q: 400, used: 1, t_ms: 1000, w_ms: 1000 },
      { policy: 'catch-all.sustained', q: 9000, used: 1, t_ms: 60000, w_ms: 60000 },
    ],
    beside: [],
    would_status: null,
    sent_status: 200,
    store: 'memory',
    limiter_us: 12,
    duration_ms: 8,
    sample: 1,
    ...changes,
  }
}

/** Admitted requests for replays: they ask for different things; the recorded decision does not matter. */
export function* trafficLines(options: TrafficOptions): Generator<string> {
  const { lines, perSecond, seed = 1, start = START, projects = 50, clients = 5000 } = options
  const random = randomOf(seed)
  const pick = (most: number) => Math.floor(random() * most)
  let at = start
  for (let i = 0; i < lines; i++) {
    at += (-Math.log(1 - random()) * 1000) / perSecond
    const path = PATHS[pick(PATHS.length)] as string
    const client = pick(clients)
    const record = decisionRecord({
      ts: new Date(at).toISOString(),
      id: `request-${i}`,
      project: `project-${pick(projects)}`,
      method: path.startsWith('/self-service') || random() < 0.2 ? 'POST' : 'GET',
      path,
      client: hash(`client ${client}`),
      ip: `198.51.${client % 200}.0/24`,
      key: hash(`key ${client}`),
      duration_ms: pick(200),
    })
    yield `${JSON.stringify({ level: 'info', time: record.ts, ...record, msg: 'decision' })}\n`
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
