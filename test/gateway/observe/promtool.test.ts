/** The metrics of a gateway after traffic: in the form that Prometheus recommends, and all of them documented. */
import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { findCommand } from '../../helpers/child-server.js'
import { documentedNames } from '../../helpers/documented.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { reportMissing } from '../../helpers/missing.js'
import { redisUrl } from '../../helpers/redis.js'

const LIMITS = `version: 1
kind: project-limits
buckets: { scarce: [/scarce], rest: ["*"] }
limits: [{ for: [{}], quotas: { scarce: { burst: 1, sustained: 1 }, rest: { burst: 1000, sustained: 10000 } } }]
`

/** The response to a scrape after some requests, on `workers` processes. */
async function scrape(t: Test, redis: string, workers: number): Promise<string> {
  const url = await startApp(t, (_req, res) => res.end('ok'))
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0, workers: ${workers} }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s }
upstreams: { app: { url: "${url}" }, pair: { urls: ["http://127.0.0.1:1", "http://127.0.0.1:2"] }, identity: { embedded: identity } }
routes: [{ path: /pair, upstream: pair }, { path: /forms/**, upstream: identity }, { path: /**, upstream: app }]
`,
    { 'limits.yaml': LIMITS },
  )
  const gateway = await gatewayProcess(t, folder)
  for (const path of ['/', '/scarce', '/scarce', '/pair', '/%zz', '/forms/x']) {
    await send(`${gateway.url}${path}`, { headers: { host: 'acme.localhost' } })
  }
  await send(`${gateway.adminUrl}/reload`, { method: 'POST' })
  const { body } = await send(`${gateway.adminUrl}/metrics`)
  gateway.signal('SIGTERM')
  await gateway.exited()
  return body
}

const typesOf = (text: string) =>
  new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))

t.test('promtool finds no fault, and every metric is documented with its name', async t => {
  const promtool = findCommand(['promtool'])
  if (promtool === undefined) {
    reportMissing(t, 'promtool', 'install prometheus with `npm run services` or your package manager')
    return
  }
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const told = new Map<string, string>()
  for (const workers of [1, 2]) {
    const text = await scrape(t, redis, workers)
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
    })
    t.same([status, stdout, stderr], [0, '', ''], `workers: ${workers}`)
    t.match(text, /^sluice_upstream_duration_seconds_count\{upstream="app"\} [12]$/m)
    t.match(text, /^sluice_upstream_duration_seconds_bucket\{le="\+Inf",upstream="app"\} [12]$/m)
    t.match(text, /^sluice_upstream_inflight\{upstream="app"\} 0$/m)
    t.match(text, /^sluice_store_duration_seconds_count [1-9]/m)
    t.match(text, /^sluice_build_info\{version="\d+\.\d+\.\d+",node="v\d+\.\d+\.\d+"\} 1$/m)
    const [, loadedAt] = /^sluice_policy_reload_timestamp_seconds (\S+)$/m.exec(text) ?? []
    t.ok(Math.abs(Number(loadedAt) - Date.now() / 1000) < 60, 'the policy was loaded within the last minute')
    for (const [name, type] of typesOf(text)) told.set(name, type)
  }
  const own = [...told.keys()].filter(name => !/^(directory|identity)_/.test(name))
  const documented = ['The gateway', 'The process'].flatMap(heading =>
    documentedNames('reference/metrics.md', heading),
  )
  t.same(own.sort(), documented.sort())
})
