/**
 * `npm run bench`: what the gateway costs compared with its peers. Every sample is a fresh process on a core of its
 * own, rounds are interleaved, figures are medians. Writes docs/benchmarks.md when everything was measured.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/child-server.js'
import { type Scope, scoped, temporaryFolder } from '../test/helpers/scope.js'
import { type UpstreamPorts, upstreamConfig } from './bench/configs.js'
import { CONTESTANTS, type Contestant, installPeers } from './bench/contestants.js'
import { LOAD_CORE, needs, needsTwoCores, startOn } from './bench/machine.js'
import { type BenchSection, writePage } from './bench/page.js'
import { startBenchRedis } from './bench/redis.js'
import { SCENARIOS, type Scenario } from './bench/scenarios.js'
import { type Samples, sampleText, tableOf } from './bench/table.js'
import { say, script } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    scenarios: { type: 'string' },
    contestants: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const chosen = <T extends { readonly name: string }>(list: readonly T[], names: string | undefined) =>
  names === undefined ? list : list.filter(({ name }) => names.split(',').includes(name))

await script(() =>
  scoped(async t => {
    needsTwoCores()
    needs('taskset', 'wrk', 'nginx', 'redis-server')
    installPeers()
    const contestants = chosen(CONTESTANTS, options.contestants).filter(one => one.isThere?.() ?? true)
    const ports = { http1: await freePort(), http2: await freePort() }
    const config = upstreamConfig(temporaryFolder(t, 'bench'), ports)
    await startOn(t, LOAD_CORE, ['nginx', '-c', config], ports.http1)
    const sections: BenchSection[] = []
    for (const scenario of chosen(SCENARIOS, options.scenarios)) {
      sections.push(await runScenario(scenario, contestants, ports))
    }
    if (!options.write) return
    const how = `${options.rounds} rounds of ${options.seconds} s, medians`
    const about = { page: 'benchmarks.md', title: 'Benchmarks', notes: 'notes.md', details: 'details.md' }
    writePage({ ...about, how, sections })
  }),
)

async function runScenario(
  scenario: Scenario,
  contestants: readonly Contestant[],
  ports: Required<UpstreamPorts>,
) {
  const { title, settings, away, measure } = scenario
  needs(...(scenario.needs ?? []))
  const rows = contestants
    .filter(contestant =>
      scenario.who === undefined
        ? contestant.knows === undefined && contestant.only === undefined
        : scenario.who(contestant),
    )
    .map((contestant): Samples & { contestant: Contestant } => ({
      ...{ contestant, label: contestant.label, samples: [] },
    }))
  say(title)
  const upstreamPort = settings.http2Upstream ? ports.http2 : ports.http1
  const take = async (t: Scope, { start, load }: Contestant) => {
    const redis = await startBenchRedis(t, away)
    const running = await start(t, { folder: temporaryFolder(t, 'bench'), redis, upstreamPort, ...settings })
    await sleep(500)
    return measure({ running, load, redis, seconds: Number(options.seconds) })
  }
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const { contestant, samples } of rows) {
      const sample = await scoped(t => take(t, contestant))
      samples.push(sample)
      say(`  ${contestant.name}: ${sampleText(sample, 4)}`)
    }
  }
  const text = tableOf(rows)
  console.log(`\n### ${title}\n\n${text}\n`)
  return { title, text }
}
