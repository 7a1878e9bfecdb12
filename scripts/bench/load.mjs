/** Load by wrk, or by h2load for HTTP/2; always against 127.0.0.1 and for a bounded time. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { inProject } from '../lib/run.mjs'
import { cpuUs, LOAD_CORE } from './processes.mjs'

const SCRIPTS = inProject('scripts', 'bench', 'wrk')

/**
 * Runs wrk on the load core.
 *
 * @returns requests, seconds, rps, p50 and p99 in ms, and `others`: how many responses were neither 2xx nor 3xx
 */
export async function load({
  port,
  connections,
  seconds,
  script,
  host = 'bench.test',
  args = [],
  scheme = 'http',
  streams,
}) {
  if (streams !== undefined) return loadHttp2({ port, connections, seconds, host, streams })
  const lua = script === undefined ? [] : ['-s', join(SCRIPTS, script)]
  const url = `${scheme}://127.0.0.1:${port}/x`
  const text = await output('taskset', [
    ...[
      '-c',
      LOAD_CORE,
      'wrk',
      '-t1',
      `-c${connections}`,
      `-d${seconds}`,
      '--latency',
      '-H',
      `Host: ${host}`,
    ],
    ...[...lua, url, ...(args.length > 0 ? ['--', ...args] : [])],
  ])
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

/** HTTP/2 over TLS, with `streams` concurrent requests on each connection. */
async function loadHttp2({ port, connections, seconds, host, streams }) {
  const text = await output('taskset', [
    ...['-c', LOAD_CORE, 'h2load', `-c${connections}`, `-m${streams}`, `-D${seconds}`, '-t1'],
    ...['-H', `:authority: ${host}`, `https://127.0.0.1:${port}/x`],
  ])
  const [, done] = /requests: \d+ total, \d+ started, (\d+) done/.exec(text) ?? []
  const [, ok, redirects] = /status codes: (\d+) 2xx, (\d+) 3xx/.exec(text) ?? []
  if (done === undefined || ok === undefined) throw new Error(`h2load said: ${text}`)
  // h2load prints minimum, maximum, mean and deviation, but no percentiles.
  const [, mean] = /time for request:\s+\S+\s+\S+\s+(\S+)/.exec(text) ?? []
  return {
    requests: Number(done),
    rps: Number(done) / seconds,
    mean: milliseconds(mean),
    others: Number(done) - Number(ok) - Number(redirects),
  }
}

/** Runs a load on a started program; `us` is the CPU time that each request cost it, in microseconds. */
export async function loadOn({ pid, port }, options) {
  const before = cpuUs(pid)
  const result = await load({ port, ...options })
  return { ...result, us: (cpuUs(pid) - before) / result.requests }
}

function output(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', chunk => {
      text += chunk
    })
    child.once('error', reject)
    child.once('exit', () => resolve(text))
  })
}

function milliseconds(text) {
  const [, number, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text ?? '') ?? []
  return Number(number) * { us: 0.001, ms: 1, s: 1000, m: 60_000 }[unit]
}
