/**
 * `npm run bench:live`: what open live-event streams cost the gateway. 1,000 rules, 100,000 keys, in one process on a
 * core of its own, with 0, 1 and 5 streams open, idle and under a steady load; medians of interleaved rounds.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sluiceConfig, upstreamConfig } from './bench/configs.mjs'
import { load } from './bench/load.mjs'
import { cpuUs, freePort, LOAD_CORE, PROXY_CORE, require, residentBytes, start } from './bench/processes.mjs'
import { median, tableFrom } from './bench/table.mjs'
import { inProject, say, script } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '8' },
  },
})
const RULES = 1000
const KEYS = 100_000
const STREAMS = [0, 1, 5]
/** Milliseconds between two requests on each of the 32 connections. */
const PAUSE = { none: 0, steady: 10 }

const rulesFile = `version: 1
kind: volumetric
rules:
${Array.from({ length: RULES }, (_, i) => `  - { id: rule-${i}, match: [/r${i}], key: [header:x-client], missing: skip, quota: { requests: ${i % 2 ? 100 : 100_000}, per: 10m } }\n`).join('')}`

await script(async () => {
  require('taskset', 'wrk', 'nginx')
  const base = mkdtempSync(join(tmpdir(), 'sluice-bench-live-'))
  const [upstreamPort, port, adminPort] = [await freePort(), await freePort(), await freePort()]
  const upstream = await start(LOAD_CORE, 'nginx', ['-c', upstreamConfig(base, upstreamPort)], {
    port: upstreamPort,
  })
  const url = `http://127.0.0.1:${upstreamPort}`
  const folder = sluiceConfig(join(base, 'config'), { port, adminPort, upstream: url, limits: 'roomy' })
  writeFileSync(join(folder, 'policies', 'rules.yaml'), rulesFile)
  const cli = inProject('dist', 'gateway', 'cli.js')
  const gateway = await start(PROXY_CORE, process.execPath, [cli, 'serve', '--config', folder], { port })
  try {
    const rows = await measure(gateway.pid, port, `http://127.0.0.1:${adminPort}/live/events`)
    console.log(`\n${tableFrom(['streams', 'idle', 'under load', 'µs/request', 'requests/s'], rows)}\n`)
    say(`${Math.round(residentBytes(gateway.pid) / 1e6)} MB resident`)
  } finally {
    await gateway.stop()
    await upstream.stop()
    rmSync(base, { recursive: true, force: true })
  }
})

async function measure(pid, port, events) {
  const wrk = (seconds, pause) =>
    load({ port, connections: 32, seconds, script: 'live.lua', args: [RULES, KEYS, pause].map(String) })
  // Warm-up: every key must have been seen, and the JIT compiler must have settled.
  await wrk(10, PAUSE.none)
  const seconds = Number(options.seconds)
  const samples = new Map(STREAMS.map(streams => [streams, []]))
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [streams, measured] of samples) {
      const close = await open(streams, events)
      await sleep(1500)
      const before = cpuUs(pid)
      await sleep(seconds * 1000)
      const idle = (cpuUs(pid) - before) / (seconds * 1e6)
      const { requests } = await wrk(seconds, PAUSE.steady)
      const busy = cpuUs(pid) - before - idle * seconds * 1e6
      close()
      const sample = { idle, busy: busy / (seconds * 1e6), us: busy / requests, rps: requests / seconds }
      measured.push(sample)
      say(
        `${streams} streams: ${JSON.stringify(sample, (_, value) => Number(value.toPrecision?.(3)) || value)}`,
      )
      // The gateway keeps what it collects for a stream for a while after the stream has closed.
      await sleep(streams === 0 ? 0 : 26_000)
    }
  }
  const share = value => `${(value * 100).toFixed(2)} %`
  return [...samples].map(([streams, all]) => {
    const of = key => median(all.map(sample => sample[key]))
    return [streams, share(of('idle')), share(of('busy')), of('us').toFixed(1), Math.round(of('rps'))].map(
      String,
    )
  })
}

/** Opens streams and reads them; returns a function that closes them. */
async function open(streams, events) {
  const ending = new AbortController()
  for (let i = 0; i < streams; i += 1) {
    const { body } = await fetch(events, { signal: ending.signal })
    body.pipeTo(new WritableStream()).catch(() => undefined)
  }
  return () => ending.abort()
}
