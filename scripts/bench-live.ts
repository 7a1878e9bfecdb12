/**
 * `npm run bench:live`: what open live-event streams cost the gateway. 1,000 rules, 100,000 keys, in one process on a
 * core of its own, with 0, 1 and 5 streams open, idle and under a steady load; medians of interleaved rounds.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/child-server.js'
import { scoped, temporaryFolder } from '../test/helpers/scope.js'
import { sluiceConfig, upstreamConfig } from './bench/configs.js'
import { load } from './bench/load.js'
import {
  cpuUs,
  LOAD_CORE,
  needs,
  PROXY_CORE,
  residentBytes,
  sluiceCommand,
  startOn,
} from './bench/machine.js'
import { medianOf, type Sample, sampleText } from './bench/table.js'
import { say, script } from './lib/run.mjs'
import { tableFrom } from './lib/table.js'

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

const RULES_FILE = `version: 1
kind: volumetric
rules:
${Array.from({ length: RULES }, (_, i) => `  - { id: rule-${i}, match: [/r${i}], key: [header:x-client], missing: skip, quota: { requests: ${i % 2 ? 100 : 100_000}, per: 10m } }\n`).join('')}`

await script(() =>
  scoped(async t => {
    needs('taskset', 'wrk', 'nginx')
    const [upstreamPort, port, adminPort] = [await freePort(), await freePort(), await freePort()]
    const upstream = upstreamConfig(temporaryFolder(t, 'bench-live'), { http1: upstreamPort })
    await startOn(t, LOAD_CORE, ['nginx', '-c', upstream], upstreamPort)
    const policies = { 'rules.yaml': RULES_FILE }
    const folder = sluiceConfig(t, { port, adminPort, upstreamPort, limits: 'roomy' }, policies)
    const { pid } = await startOn(t, PROXY_CORE, sluiceCommand(folder), port, { DATA_DIR: folder })
    const rows = await measure(pid, port, `http://127.0.0.1:${adminPort}/live/events`)
    console.log(`\n${tableFrom(['streams', 'idle', 'under load', 'µs/request', 'requests/s'], rows)}\n`)
    say(`${Math.round(residentBytes(pid) / 1e6)} MB resident`)
  }),
)

async function measure(pid: number, port: number, events: string): Promise<string[][]> {
  const wrk = (seconds: number, pause: number) =>
    load(port, { connections: 32, seconds, script: 'live.lua', args: [RULES, KEYS, pause].map(String) })
  // Warm-up: every key must have been seen, and the JIT compiler must have settled.
  await wrk(10, PAUSE.none)
  const seconds = Number(options.seconds)
  const rows = STREAMS.map(streams => ({ label: String(streams), streams, samples: [] as Sample[] }))
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const { streams, samples } of rows) {
      const close = await open(streams, events)
      await sleep(1500)
      const before = cpuUs(pid)
      await sleep(seconds * 1000)
      const idle = (cpuUs(pid) - before) / (seconds * 1e6)
      const { requests } = await wrk(seconds, PAUSE.steady)
      const busy = cpuUs(pid) - before - idle * seconds * 1e6
      close()
      const sample = { idle, busy: busy / (seconds * 1e6), us: busy / requests, rps: requests / seconds }
      samples.push(sample)
      say(`${streams} streams: ${sampleText(sample, 3)}`)
      // The gateway continues to collect for a stream for a while after the stream has closed.
      await sleep(streams === 0 ? 0 : 26_000)
    }
  }
  const share = (value: number) => `${(value * 100).toFixed(2)} %`
  return rows.map(row => [
    ...[row.label, share(medianOf(row, 'idle')), share(medianOf(row, 'busy'))],
    ...[medianOf(row, 'us').toFixed(1), String(Math.round(medianOf(row, 'rps')))],
  ])
}

/** Opens streams and reads them; returns a function that closes them. */
async function open(streams: number, events: string): Promise<() => void> {
  const ending = new AbortController()
  for (let i = 0; i < streams; i += 1) {
    const { body } = await fetch(events, { signal: ending.signal })
    body?.pipeTo(new WritableStream()).catch(() => undefined)
  }
  return () => ending.abort()
}
