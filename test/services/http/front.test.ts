/** Only the gateway reaches its services, and only it says who a client is. */
import t from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { started as startedIdentity } from '../identity/started.js'

const PERSON = 'traits.email=ann%40x.example&traits.name.first=Ann'
const FORM = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }

const yaml = (app: string, more = '') => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams:
  app: { url: "${app}" }
  directory: { embedded: directory }
  identity: { embedded: identity }
  welcome: { embedded: welcome }
routes:
  - { path: /app/**, upstream: app }
  - { path: /api/**, upstream: directory }
  - { path: /**, upstream: identity }
  - { path: /, upstream: welcome }
${more}`

t.test('another program of this machine gets nothing from the services of a gateway', async t => {
  const heard: string[] = []
  const app = await startApp(t, (req, res) => {
    heard.push(req.rawHeaders.join('\n').toLowerCase())
    res.end('ok')
  })
  const folder = writeConfig(t, yaml(app), {})
  const gateway = await gatewayProcess(t, folder)
  const state = await (await fetch(`${gateway.adminUrl}/state`)).text()
  const services = [...state.matchAll(/"backend":"(http:[^"]+)"/g)]
    .map(([, url]) => url)
    .filter(url => url !== app)
  t.equal(services.length, 3)
  for (const url of services) {
    for (const secret of [undefined, '', 'guessed']) {
      const headers = {
        'x-sluice-project': 'acme',
        ...(secret !== undefined && { 'x-sluice-secret': secret }),
      }
      for (const path of ['/', '/self-service/registration', '/api/v1/openapi.json', '/nothing']) {
        const answer = await fetch(url + path, { headers })
        t.equal(answer.status, 403, `${path} ${secret}`)
        t.match(await answer.text(), /use the address of the gateway/)
      }
    }
  }
  const asked = { headers: { 'x-sluice-secret': 'mine', x_sluice_secret: 'mine' } }
  for (const path of ['/', '/self-service/registration']) {
    t.equal((await fetch(gateway.url + path, asked)).status, 200)
  }
  await fetch(`${gateway.url}/app/x`, asked)
  t.notMatch(heard.join('\n'), 'secret')
})

t.test('a reload and workers keep the services of a gateway reachable', async t => {
  const app = await startApp(t, (_req, res) => res.end('ok'))
  const folder = writeConfig(
    t,
    yaml(app, `redis: ${await redisUrl(t)}\n`).replace('port: 0 }', 'port: 0, workers: 2 }'),
    {},
  )
  const gateway = await gatewayProcess(t, folder)
  for (let i = 0; i < 6; i++) {
    t.equal((await fetch(`${gateway.url}/self-service/registration`)).status, 200)
    if (i === 2) t.equal((await fetch(`${gateway.adminUrl}/reload`, { method: 'POST' })).status, 200)
  }
  t.notMatch(gateway.out(), 'x-sluice-secret')
})

t.test('a service without a gateway believes nobody who says to be one', async t => {
  const { form, call } = await startedIdentity(t)
  const { id } = (await form(PERSON, { ...FORM, 'x-sluice-project': 'other' })).json()
  t.equal((await call('GET', `/admin/identities/${id}`)).status, 200, 'it is in the only project')
  t.equal((await call('GET', `/admin/identities/${id}`, { 'x-sluice-secret': 'any' })).status, 200)
})
