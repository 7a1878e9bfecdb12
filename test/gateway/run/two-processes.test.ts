/** Two gateway processes on one Redis, one of them with a wrong clock: together they admit what a single one would. */
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { gatewayProcess, strictGatewayYaml, writeConfig } from '../../helpers/gateway-process.js'
import { type Received, send, startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'

const RUNS = 10
const QUOTA = 50
const WRONG_BY_MS = 90_000

/** Loaded before the gateway: sets the clock of its process ahead. */
const WRONG_CLOCK = `
const real = Date.now
Date.now = () => real() + ${WRONG_BY_MS}
globalThis.Date = class extends Date {
  constructor(...given) { super(...(given.length > 0 ? given : [real() + ${WRONG_BY_MS}])) }
}
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + ${WRONG_BY_MS} })
`

const runs = Array.from({ length: RUNS }, (_, i) => `run-${i}`)
const POLICY = `version: 1
kind: project-limits
buckets: { ${runs.map(run => `${run}: [/${run}]`).join(', ')} }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { ${runs.map(run => `${run}: { burst: 1000, sustained: ${QUOTA} }`).join(', ')} }
`

t.test('two processes on one Redis, one with a clock 90 s ahead', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const reached = new Map<string, number>()
  const upstream = await startApp(t, (req, res) => {
    reached.set(req.url as string, (reached.get(req.url as string) ?? 0) + 1)
    res.end('done')
  })
  const folder = writeConfig(t, strictGatewayYaml(redis, upstream), { 'project-limits.yaml': POLICY })
  const wrongClock = join(folder, 'wrong-clock.mjs')
  writeFileSync(wrongClock, WRONG_CLOCK)
  const [right, wrong] = await Promise.all([
    gatewayProcess(t, folder),
    gatewayProcess(t, folder, { NODE_OPTIONS: `--import=${pathToFileURL(wrongClock)}` }),
  ])
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const knock = (gateway: typeof right, path: string) =>
    send(gateway.url + path, { agent, headers: { host: 'acme.localhost' } })

  t.test('exactly 50 of 400 simultaneous requests reach the upstream, in ten runs of ten', async t => {
    for (const run of runs) {
      const sent = Array.from({ length: 400 }, (_, i) => knock(i % 2 === 0 ? right : wrong, `/${run}`))
      const answers = await Promise.all(sent)
      t.equal(reached.get(`/${run}`), QUOTA, run)
      t.equal(answers.filter(({ status }) => status === 200).length, QUOTA)
      t.equal(answers.filter(({ status }) => status === 429).length, 400 - QUOTA)
    }
  })

  t.test('both give a refused client the same time to wait', async t => {
    const [here, there] = await Promise.all([knock(right, '/run-9'), knock(wrong, '/run-9')])
    const wait = ({ headers }: Received) => Number(headers['retry-after'])
    t.ok(wait(here) >= 1 && wait(here) <= 60, `${wait(here)} s`)
    t.ok(Math.abs(wait(here) - wait(there)) <= 1, `${wait(there)} s`)
    const toldAt = [right, wrong].map(({ out }) => Date.parse(/"ts":"([^"]+)"/.exec(out())?.[1] as string))
    t.ok((toldAt[1] as number) - (toldAt[0] as number) > WRONG_BY_MS - 5000, 'one clock is wrong')
  })
})
