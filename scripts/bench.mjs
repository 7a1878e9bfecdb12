/**
 * `npm run bench`: what the gateway costs compared with its peers. Every sample is a fresh process on a core of its
 * own, rounds are interleaved, figures are medians. Writes docs/benchmarks.md when everything was measured.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { upstreamConfig } from './bench/configs.mjs'
import { CONTESTANTS, installPeers } from './bench/contestants.mjs'
import { writePage } from './bench/page.mjs'
import { freePort, LOAD_CORE, require, start } from './bench/processes.mjs'
import { startRedis } from './bench/redis.mjs'
import { SCENARIOS } from './bench/scenarios.mjs'
import { tableOf } from './bench/table.mjs'
import { Failure, say, script } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    scenarios: { type: 'string' },
    contestants: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const chosen = (list, names) =>
  names === undefined ? list : list.filter(({ name }) => names.split(',').includes(name))

await script(async () => {
  if (process.platform !== 'linux' || cpus().length < 2)
    throw new Failure('The benchmark needs Linux and two cores.')
  require('taskset', 'wrk', 'nginx', 'redis-server')
  installPeers()
  const contestants = chosen(CONTESTANTS, options.contestants).filter(({ isThere = () => true }) => isThere())
  const base = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstreamPort = await freePort()
  const upstream = await start(LOAD_CORE, 'nginx', ['-c', upstreamConfig(base, upstreamPort)], {
    port: upstreamPort,
  })
  const tables = []
  try {
    for (const scenario of chosen(SCENARIOS, options.scenarios)) {
      tables.push(await runScenario(scenario, contestants, { base, upstreamPort }))
    }
  } finally {
    await upstream.stop()
    rmSync(base, { recursive: true, force: true })
  }
  if (options.write) {
    const { rounds, seconds } = options
    const how = `${rounds} rounds of ${seconds} s, medians`
    const about = { page: 'benchmarks.md', title: 'Benchmarks', notes: 'notes.md', details: 'details.md' }
    writePage({ ...about, how, sections: tables })
  }
})

async function runScenario(scenario, contestants, { base, upstreamPort }) {
  const { title, who = () => true, settings, away, needs = [], measure } = scenario
  require(...needs)
  const rows = contestants
    .filter(who)
    .map(contestant => ({ contestant, label: contestant.label, samples: [] }))
  say(title)
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const { contestant, samples } of rows) {
      const folder = mkdtempSync(join(base, 'sample-'))
      const redis = await startRedis(folder, away)
      let running
      try {
        running = await contestant.start({
          folder,
          redis,
          upstreamPort,
          upstream: `http://127.0.0.1:${upstreamPort}`,
          ...settings,
        })
        await sleep(500)
        const sample = await measure({ running, redis, seconds: Number(options.seconds) })
        samples.push(sample)
        say(
          `  ${contestant.name}: ${JSON.stringify(sample, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value))}`,
        )
      } finally {
        await running?.stop()
        await redis.stop()
      }
    }
  }
  const table = tableOf(rows)
  console.log(`\n### ${title}\n\n${table}\n`)
  return { title, text: table }
}
