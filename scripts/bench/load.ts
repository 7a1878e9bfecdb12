/** Load by wrk, or by h2load for HTTP/2; always against 127.0.0.1 and for a bounded time. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inProject } from '../lib/run.mjs'
import { cpuUs, LOAD_CORE } from './machine.js'

const SCRIPTS = inProject('scripts', 'bench', 'wrk')

export interface Load {
  readonly connections: number
  readonly seconds: number
  /** A file of wrk/, and its arguments. */
  readonly script?: string
  readonly args?: readonly string[]
  readonly host?: string
  readonly scheme?: string
  /** By default `/x`, which is 300 bytes of JSON; `/big` is 100 kB. */
  readonly path?: string
  /** For HTTP/2 over TLS: how many concurrent requests there are on each connection. */
  readonly streams?: number
  /** Bytes of the body that each HTTP/2 request sends. */
  readonly body?: number
  /** More header fields of HTTP/2 requests, `name: value`. */
  readonly headers?: readonly string[]
}

export interface Loaded {
  readonly requests: number
  readonly rps: number
  /** Milliseconds. h2load gives a mean, and no percentiles. */
  readonly p50?: number
  readonly p99?: number
  readonly mean?: number
  /** How many responses were neither 2xx nor 3xx. */
  readonly others: number
}

/** Loads a port from the load core. */
export async function load(port: number, options: Load): Promise<Loaded> {
  const { connections, seconds, script, host = 'bench.test', args = [], scheme = 'http', streams } = options
  const { path = '/x' } = options
  if (streams !== undefined) return loadHttp2(port, { ...options, host, path, streams })
  const lua = script === undefined ? [] : ['-s', join(SCRIPTS, script)]
  const url = `${scheme}://127.0.0.1:${port}${path}`
  const wrk = ['wrk', '-t1', `-c${connections}`, `-d${seconds}`, '--latency', '-H', `Host: ${host}`]
  const text = await output(wrk, ...lua, url, ...(args.length > 0 ? ['--', ...args] : []))
  const [, requests, time] = /(?<!\d)(\d+) requests in ([\d.]+\w+)/.exec(text) ?? []
  if (requests === undefined) throw new Error(`wrk said: ${text}`)
  return {
    requests: Number(requests),
    rps: Number(requests) / (milliseconds(time) / 1000),
    p50: milliseconds(/^[ \t]+50%\s+(\S+)/m.exec(text)?.[1]),
    p99: milliseconds(/^[ \t]+99%\s+(\S+)/m.exec(text)?.[1]),
    others: Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0),
  }
}

async function loadHttp2(port: number, options: Load): Promise<Loaded> {
  const { connections, seconds, host, path, streams, body = 0, headers = [] } = options
  const h2load = ['h2load', `-c${connections}`, `-m${streams}`, `-D${seconds}`, '-t1']
  const fields = [`:authority: ${host}`, ...headers].flatMap(field => ['-H', field])
  const data = body === 0 ? [] : ['-d', fileOf(body)]
  const text = await output(h2load, ...data, ...fields, `https://127.0.0.1:${port}${path}`)
  const [, done] = /requests: \d+ total, \d+ started, (\d+) done/.exec(text) ?? []
  const [, ok, redirects] = /status codes: (\d+) 2xx, (\d+) 3xx/.exec(text) ?? []
  if (done === undefined || ok === undefined) throw new Error(`h2load said: ${text}`)
  // Minimum, maximum, mean and deviation.
  const [, mean] = /time for request:\s+\S+\s+\S+\s+(\S+)/.exec(text) ?? []
  return {
    requests: Number(done),
    rps: Number(done) / seconds,
    mean: milliseconds(mean),
    // Responses that came after the end have a status, too.
    others: Math.max(Number(done) - Number(ok) - Number(redirects), 0),
  }
}

/** A file of so many bytes. */
function fileOf(bytes: number): string {
  const file = join(tmpdir(), `sluice-bench-${bytes}-bytes`)
  writeFileSync(file, 'x'.repeat(bytes))
  return file
}

/** Loads a started program; `us` is the CPU time that each request cost it, in microseconds. */
export async function loadOn(pid: number, port: number, options: Load): Promise<Loaded & { us: number }> {
  const before = cpuUs(pid)
  const result = await load(port, options)
  return { ...result, us: (cpuUs(pid) - before) / result.requests }
}

function output(command: readonly string[], ...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const pinned = ['-c', LOAD_CORE, ...command, ...args]
    const child = spawn('taskset', pinned, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', chunk => {
      text += chunk
    })
    child.once('error', reject)
    child.once('exit', () => resolve(text))
  })
}

const UNITS: Record<string, number> = { us: 0.001, ms: 1, s: 1000, m: 60_000 }

function milliseconds(text = ''): number {
  const [, number, unit = ''] = /^([\d.]+)(us|ms|s|m)$/.exec(text) ?? []
  return Number(number) * (UNITS[unit] ?? Number.NaN)
}
