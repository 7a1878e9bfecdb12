/** What is measured on each contestant. One sample is one fresh process. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contestant, Running, Settings } from './contestants.js'
import { idleConnections } from './idle.js'
import { type Load, load, loadOn } from './load.js'
import { residentBytes } from './machine.js'
import type { BenchRedis } from './redis.js'
import type { Sample } from './table.js'

interface Bench {
  readonly running: Running
  /** What the contestant is asked in place of the scenario's load. */
  readonly load?: Partial<Load> | undefined
  readonly seconds: number
  readonly redis: BenchRedis
}

export interface Scenario {
  readonly name: string
  readonly title: string
  /** What contestants are started with. */
  readonly settings: Settings
  /** One-way delay of Redis in ms. */
  readonly away?: number
  /** Which contestants. */
  who?(contestant: Contestant): boolean | undefined
  /** Commands. */
  readonly needs?: readonly string[]
  measure(bench: Bench): Promise<Sample>
}

/** Long enough for the JIT compiler to settle, which runs on the same core. */
const WARM_UP_SECONDS = 4
const KEYS = 100_000
const HTTP2_LOADS = [
  ['http2', 8, 10],
  ['http2-64', 64, 1],
  ['http2-1', 1, 100],
] as const

/** A steady load, measured after a warm-up. */
async function steady(bench: Bench, scenario: Omit<Load, 'seconds'>): Promise<Sample> {
  const { running, seconds, redis } = bench
  const { pid, port } = running
  const options = { ...scenario, ...bench.load }
  await load(port, { seconds: WARM_UP_SECONDS, ...options })
  const commands = await redis.commands()
  const { requests, others, ...result } = await loadOn(pid, port, { seconds, ...options })
  return {
    ...result,
    commands: ((await redis.commands()) - commands) / requests,
    refused: others / requests,
  }
}

/** One request for each of many keys: the memory that the counters take. */
async function keys({ running: { pid, port }, redis }: Bench): Promise<Sample> {
  await load(port, { connections: 64, seconds: WARM_UP_SECONDS, host: 'warm.test' })
  await sleep(500)
  const [resident, used] = [residentBytes(pid), await redis.usedMemory()]
  let requests = 0
  let rps = 0
  // Counters expire with their window, so all keys must be requested within it.
  for (let runs = 0; requests < KEYS && runs < 10; runs += 1) {
    const args = [String(KEYS), String(requests)]
    const result = await load(port, { connections: 64, seconds: 8, script: 'keys.lua', args })
    requests += result.requests
    rps = result.rps
  }
  const reached = Math.min(requests, KEYS)
  return {
    rps,
    keys: reached,
    bytes: (residentBytes(pid) - resident) / reached,
    redisBytes: ((await redis.usedMemory()) - used) / reached,
  }
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'saturated',
    title: 'Saturated: 64 connections, nothing refused',
    settings: { limits: 'roomy' },
    measure: bench => steady(bench, { connections: 64 }),
  },
  {
    name: 'few',
    title: '8 connections, nothing refused',
    settings: { limits: 'roomy' },
    measure: bench => steady(bench, { connections: 8 }),
  },
  {
    name: 'paced',
    title: 'Paced: 32 connections, about 3800 requests a second',
    settings: { limits: 'roomy' },
    measure: bench => steady(bench, { connections: 32, script: 'paced.lua' }),
  },
  {
    name: 'flood',
    title: 'Flood: 64 connections on one key over its limit, all refused',
    settings: { limits: 'tight' },
    who: ({ counts, name, knows, only }) =>
      (counts && name !== 'leased' && knows === undefined) || only === 'flood',
    measure: bench => steady(bench, { connections: 64 }),
  },
  ...[
    { delay: 1, connections: 64 },
    { delay: 5, connections: 64 },
    { delay: 5, connections: 256 },
  ].map(
    ({ delay, connections }): Scenario => ({
      name: `redis-${delay}ms${connections === 64 ? '' : `-${connections}`}`,
      title: `Redis ${delay} ms away in each direction, ${connections} connections`,
      settings: { limits: 'roomy' },
      away: delay,
      who: ({ redis }) => redis,
      measure: bench => steady(bench, { connections }),
    }),
  ),
  {
    name: 'https',
    title: 'HTTPS with HTTP/1.1, 64 connections',
    settings: { limits: 'roomy', tls: true },
    who: ({ tls }) => tls,
    measure: bench => steady(bench, { connections: 64, scheme: 'https' }),
  },
  ...HTTP2_LOADS.map(
    ([name, connections, streams]): Scenario => ({
      name,
      title: `HTTPS with HTTP/2, ${connections} connection${connections === 1 ? '' : 's'} of ${streams} stream${streams === 1 ? '' : 's'}`,
      settings: { limits: 'roomy', tls: true },
      who: ({ tls, only }) => tls || only === 'http2',
      needs: ['h2load'],
      measure: bench => steady(bench, { connections, streams }),
    }),
  ),
  {
    name: 'bodies',
    title: 'Answers of 100 kB, 8 connections',
    settings: { limits: 'roomy' },
    who: ({ tls, name }) => tls || name === 'sockets',
    measure: bench => steady(bench, { connections: 8, path: '/big' }),
  },
  {
    name: 'bodies-https',
    title: 'Answers of 100 kB, HTTPS with HTTP/1.1, 8 connections',
    settings: { limits: 'roomy', tls: true },
    who: ({ tls }) => tls,
    measure: bench => steady(bench, { connections: 8, scheme: 'https', path: '/big' }),
  },
  {
    name: 'bodies-http2',
    title: 'Answers of 100 kB, HTTPS with HTTP/2, 8 connections of 10 streams',
    settings: { limits: 'roomy', tls: true },
    who: ({ tls, only }) => tls || only === 'http2',
    needs: ['h2load'],
    measure: bench => steady(bench, { connections: 8, streams: 10, path: '/big' }),
  },
  {
    name: 'idle',
    title: '1000 connections without a request, HTTPS with HTTP/2',
    settings: { limits: 'roomy', tls: true },
    who: ({ tls, only }) => tls || only === 'http2' || only === 'idle',
    measure: ({ running }) => idleConnections(running),
  },
  ...[1, 2].map(
    (workers): Scenario => ({
      name: `workers-${workers}`,
      title: `${workers} worker${workers === 1 ? '' : 's'} on both cores, 64 connections; the load and the upstream share one of them`,
      settings: { limits: 'roomy', workers },
      who: ({ name }) => name === 'strict' || name === 'leased',
      measure: bench => steady(bench, { connections: 64 }),
    }),
  ),
  {
    name: 'keys',
    title: `${KEYS} keys, one request each and on`,
    settings: { limits: 'roomy', keys: KEYS },
    who: ({ name, knows, only }) => name !== 'sockets' && knows === undefined && only === undefined,
    measure: keys,
  },
  {
    name: 'callers',
    title: '10000 projects, each known by its host, an API key or a token, 64 connections',
    settings: { limits: 'roomy', callers: 10_000 },
    who: ({ name, knows }) => name === 'memory' || knows !== undefined,
    measure: bench =>
      steady(bench, { connections: 64, script: 'headers.lua', args: [bench.running.headers ?? ''] }),
  },
  {
    name: 'routes',
    title: 'Routes that a request does not use, and header fields set and removed, 64 connections',
    settings: { limits: 'roomy' },
    who: ({ name, only }) => name === 'memory' || only === 'routes',
    measure: bench => steady(bench, { connections: 64 }),
  },
  {
    name: 'grpc',
    title: 'HTTP/2 to an HTTP/2 upstream, requests of 64 bytes, 8 connections of 10 streams',
    settings: { limits: 'roomy', tls: true, http2Upstream: true },
    who: ({ name, only }) => name === 'memory' || only === 'grpc',
    needs: ['h2load'],
    measure: bench => steady(bench, { connections: 8, streams: 10, body: 64 }),
  },
  {
    name: 'buckets',
    title: '10000 buckets instead of one',
    settings: { limits: 'roomy', buckets: 10_000 },
    who: ({ name }) => name === 'memory' || name === 'strict',
    measure: bench => steady(bench, { connections: 64 }),
  },
]
