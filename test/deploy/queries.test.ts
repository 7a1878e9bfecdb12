/** Every query of the alerts and the dashboard, run on a real Prometheus that scrapes a gateway under traffic. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { freePort } from '../helpers/child-server.js'
import { fakeAuthority } from '../helpers/fake-authority.js'
import { type GatewayProcess, gatewayProcess, oneUpstream, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { issuer } from '../helpers/issuer.js'
import { prometheusOf } from '../helpers/prometheus.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { inProject, projectFile } from '../helpers/root.js'
import { temporaryFolder } from '../helpers/scope.js'
import { sleep, waitUntil } from '../helpers/wait.js'

const ADMIN_KEY = 'an-admin-key-of-the-test'
const API_KEY = 'a-key-of-the-management-api'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { front: [/], other: ["*"] }
limits: [{ for: [{}], quotas: { front: { burst: 10, sustained: 60000 }, other: { burst: 1000, sustained: 60000 } } }]
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [GET /flood], key: [client-ip], quota: { requests: 2, per: 1m }, mode: report-only, reads: true }
  - { id: counted, match: [GET /counted], key: [client-ip], quota: { requests: 9999, per: 1m }, onStoreError: closed, reads: true }
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: one, match: [POST /held], key: [project, full-path], max: 1 }]
`,
}

const gatewayYaml = (redis: string, app: string, dead: string) => `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0, key: ${ADMIN_KEY} }
redis: ${redis}
store: { deadline: 1s }
identify: [api-key, host]
upstreams:
  app: { urls: ["${app}", "${dead}"], timeouts: { connect: 1s, head: 5s } }
  dead: { url: "${dead}" }
  directory: { embedded: directory }
  identity: { embedded: identity }
routes:
  - { path: /api/**, upstream: directory }
  - { path: /self-service/**, upstream: identity }
  - { path: /dead, upstream: dead }
  - { path: /**, upstream: app }
`

/** A gateway with an ordered certificate. */
async function edgeGateway(t: Test, app: string): Promise<GatewayProcess> {
  const { directory, ca } = await fakeAuthority(t, issuer(t, ['shop.test']))
  const folder = temporaryFolder(t, 'certificates')
  writeFileSync(join(folder, 'ca.pem'), ca)
  const acme = { domains: ['shop.test'], directory, ca: join(folder, 'ca.pem'), folder }
  const config = writeConfig(
    t,
    { listen: { tls: { acme } }, admin: { key: ADMIN_KEY }, ...oneUpstream(app) },
    POLICIES,
  )
  return gatewayProcess(t, config)
}

/** Everything that can happen to a gateway in production, again and again until `ended`. */
async function traffic(t: Test, { url, adminUrl }: GatewayProcess, ended: () => boolean): Promise<void> {
  const ask = (path: string, method = 'GET', body?: object, key = '') =>
    send(url + path, {
      method,
      headers: { host: 'acme.localhost', 'content-type': 'application/json', authorization: key },
      ...(body && { body: JSON.stringify(body) }),
    })
  const webhook = await startApp(t, (req, res) => req.resume().on('end', () => res.end()))
  const made = await ask(
    '/api/v1/directory-sync',
    'POST',
    {
      ...{ name: 'Acme', tenant: 'acme', product: 'crm', type: 'okta-scim-v2' },
      ...{ webhook_url: `${webhook}/hook`, webhook_secret: 'a-secret-of-the-webhook' },
    },
    `Api-Key ${API_KEY}`,
  )
  const { scim } = made.json<{ data: { scim: { path: string; secret: string } } }>().data
  ask('/held', 'POST', {}).catch(() => undefined)
  for (let i = 0; !ended(); i += 1) {
    const user = {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      ...{ userName: `user-${i}`, emails: [{ value: `user-${i}@acme.example`, primary: true }] },
    }
    await Promise.all([
      ...['/', '/', '/broken', '/dead', '/flood', '/counted', '/self-service/registration'].map(path =>
        ask(path),
      ),
      ask(`${scim.path}/Users`, 'POST', user, `Bearer ${scim.secret}`),
      send(`${url}/counted`, { headers: { host: 'acme.localhost', 'x-api-key': `wrong-${i % 2}` } }),
      send(`${adminUrl}/state`, { headers: { authorization: `Bearer wrong-${i % 2}` } }),
    ])
    await sleep(100)
  }
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}
interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
}

/** Each side of each comparison, without the threshold; of `absent(…)`, its argument. */
function operands(expr: string): string[] {
  return expr
    .split(/ (?:and|or|unless|[=!]=|[<>]=?) /)
    .filter(part => !/^[\d.]+$/.test(part))
    .map(part => part.replace(/^absent\((.*)\)$/, '$1'))
}

function queries(): Map<string, string> {
  const rules = parse(projectFile('deploy', 'prometheus', 'rules.yaml')).groups as { rules: Rule[] }[]
  const { panels } = JSON.parse(projectFile('deploy', 'grafana', 'dashboards', 'sluice.json')) as {
    panels: Panel[]
  }
  const ofRules = rules
    .flatMap(group => group.rules)
    .flatMap(({ alert, record = alert, expr }) => operands(expr).map((one, i) => [`${record} ${i}`, one]))
  const ofPanels = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }, i) => [
      `${title} ${i}`,
      expr.replaceAll('$job', 'sluice').replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m'),
    ]),
  )
  return new Map([...ofRules, ...ofPanels] as [string, string][])
}

t.test('every query of the alerts and the dashboard returns data of a gateway under traffic', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const app = await startApp(t, (req, res) => {
    if (req.url === '/held') return
    res.statusCode = req.url === '/broken' ? 500 : 200
    req.resume().on('end', () => res.end())
  })
  const dead = `http://127.0.0.1:${await freePort()}`
  const folder = writeConfig(t, gatewayYaml(redis.url, app, dead), POLICIES)
  const gateway = await gatewayProcess(t, folder, {
    API_KEYS: API_KEY,
    ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    WEBHOOK_ALLOW_PRIVATE: 'true',
    WEBHOOK_ALLOW_HTTP: 'true',
  })
  const rules = inProject('deploy', 'prometheus', 'rules.yaml')
  const edge = await edgeGateway(t, app)
  const prometheus = await prometheusOf(t, [gateway.adminUrl, edge.adminUrl], ADMIN_KEY, rules)
  if (prometheus === undefined) return

  let ended = false
  t.teardown(() => {
    ended = true
  })
  const running = traffic(t, gateway, () => ended)
  await waitUntil('the first scrapes', async () =>
    (await prometheus.query('count_over_time(sluice_policy_info[1m])')).some(count => count > 2),
  )
  appendFileSync(join(folder, 'gateway.yaml'), 'wrong: true\n')
  await sleep(2000)
  await redis.kill()

  const silent = queries()
  t.ok(silent.size > 60, `${silent.size} queries`)
  await waitUntil(
    'data',
    async () => {
      for (const [name, expr] of silent) {
        if ((await prometheus.query(expr)).some(Number.isFinite)) silent.delete(name)
      }
      return silent.size === 0
    },
    20_000,
  ).catch(() => undefined)
  t.same([...silent], [], 'every query has returned data')
  ended = true
  await running
})
