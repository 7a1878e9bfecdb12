/** The example in front of Ory Kratos, tested with a stub that answers as Kratos' documentation says. */
import { createHash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'

const KEY = 'a key of accounts'
const BROWSER = { host: 'accounts.localhost' }
const FLOW = '9f425a8d-7efc-4768-8f23-7647a74fdf13'

const json = (status: number, body: object): Parameters<typeof answering>[0][string] => [
  status,
  { 'content-type': 'application/json' },
  JSON.stringify(body),
]

/** Responds by method and path; everything else gets Kratos' 404. */
function answering(
  answers: Record<string, readonly [number, Record<string, string | string[]>, string]>,
): RequestListener {
  return (request, response) => {
    const [path] = (request.url ?? '').split('?')
    const [status, headers, body] = answers[`${request.method} ${path}`] ?? [404, {}, '404 page not found']
    request.resume().on('end', () => response.writeHead(status, headers).end(body))
  }
}

/** Kratos' public port: a flow started by a browser, its form, its submission, and the resulting session. */
const publicPort = answering({
  'GET /self-service/registration/browser': [
    303,
    {
      location: `http://127.0.0.1:4455/registration?flow=${FLOW}`,
      'set-cookie': ['csrf_token_82b1=abc; Path=/; HttpOnly; SameSite=Lax'],
    },
    '',
  ],
  'GET /self-service/registration/flows': json(200, {
    id: FLOW,
    type: 'browser',
    ui: {
      action: `http://accounts.localhost/self-service/registration?flow=${FLOW}`,
      method: 'POST',
      nodes: [],
    },
  }),
  'POST /self-service/registration': [
    303,
    {
      location: 'http://127.0.0.1:4455/',
      'set-cookie': ['ory_kratos_session=xyz; Path=/; HttpOnly', 'csrf_token_82b1=def; Path=/; HttpOnly'],
    },
    '',
  ],
  'POST /self-service/login': json(400, { id: FLOW, ui: { messages: [{ id: 4000006, type: 'error' }] } }),
  'GET /sessions/whoami': json(401, { error: { code: 401, status: 'Unauthorized' } }),
  'GET /health/alive': json(200, { status: 'ok' }),
  'GET /health/ready': json(503, { errors: { database: 'not reachable' } }),
  'GET /.well-known/ory/webauthn.js': [200, { 'content-type': 'text/javascript' }, '(function () {})()'],
  // Kratos has nothing on this port; if it had, the gateway must not route to it.
  'GET /admin/identities': json(200, []),
})
const adminPort = answering({
  'GET /admin/identities': json(200, [{ id: FLOW, schema_id: 'default', state: 'active', traits: {} }]),
  'POST /admin/identities': json(201, { id: FLOW }),
  [`DELETE /admin/identities/${FLOW}`]: [204, {}, ''],
  'GET /health/ready': json(200, { status: 'ok' }),
})

async function started(t: Test, part: 'public' | 'admin', kratos: string) {
  const env = {
    ...{ PORT: '0', ADMIN_PORT: '0', KRATOS_PUBLIC_URL: kratos, KRATOS_ADMIN_URL: kratos },
    ACCOUNTS_KEY_HASH: createHash('sha256').update(KEY).digest('hex'),
  }
  const gateway = await gatewayProcess(t, inProject('examples', 'kratos', part), {
    ...env,
    DATA_DIR: t.testdir(),
  })
  return (method: string, path: string, headers: Record<string, string> = {}, body = '') =>
    send(gateway.url + path, { method, headers, body })
}

t.test('both configurations pass the check', async t => {
  for (const part of ['public', 'admin']) {
    const { code, out } = await sluice(['check', '--config', inProject('examples', 'kratos', part)])
    t.equal(code, 0, out)
    t.match(out, /good/)
  }
})

t.test(
  'a browser registers through the public gateway, which passes on the cookies and redirects of Kratos',
  async t => {
    const ask = await started(t, 'public', await startApp(t, publicPort))
    const begun = await ask('GET', '/self-service/registration/browser', BROWSER)
    t.match(begun, {
      status: 303,
      headers: { location: /:4455\/registration\?flow=/, 'set-cookie': [/^csrf_token/] },
    })
    const form = await ask('GET', `/self-service/registration/flows?id=${FLOW}`, BROWSER)
    t.match(form.json(), { id: FLOW, ui: { action: /accounts\.localhost/ } })
    const path = `/self-service/registration?flow=${FLOW}`
    const urlencoded = { ...BROWSER, 'content-type': 'application/x-www-form-urlencoded' }
    const ended = await ask('POST', path, urlencoded, 'traits.email=ada%40acme.example&method=password')
    t.equal(ended.status, 303)
    t.equal(ended.headers['set-cookie']?.length, 2, 'each cookie keeps a header field of its own')
    t.equal((await ask('GET', '/sessions/whoami', BROWSER)).status, 401)
    t.equal((await ask('GET', '/.well-known/ory/webauthn.js', BROWSER)).status, 200)
  },
)

t.test(
  'health checks reach Kratos, and the public gateway exposes nothing of the administration',
  async t => {
    const ask = await started(t, 'public', await startApp(t, publicPort))
    t.match((await ask('GET', '/health/alive', BROWSER)).json(), { status: 'ok' })
    t.equal((await ask('GET', '/health/ready', BROWSER)).status, 503)
    for (const path of [
      '/admin/identities',
      '/self-service/../admin/identities',
      '/ADMIN/identities',
      '/version',
    ]) {
      t.not((await ask('GET', path, BROWSER)).status, 200, path)
    }
  },
)

t.test('a client that tries out passwords is refused, and a health check is not', async t => {
  const ask = await started(t, 'public', await startApp(t, publicPort))
  const statuses = []
  for (let n = 0; n < 21; n++)
    statuses.push((await ask('POST', '/self-service/login?flow=x', BROWSER)).status)
  t.same(statuses.slice(0, 20), Array(20).fill(400), 'the first 20 attempts get the response of Kratos')
  t.equal(statuses[20], 429)
  t.equal((await ask('GET', '/health/alive', BROWSER)).status, 200)
  t.equal((await ask('GET', '/self-service/registration/browser', BROWSER)).status, 303)
})

t.test('the admin gateway admits requests with a key and refuses all others', async t => {
  const ask = await started(t, 'admin', await startApp(t, adminPort))
  const key = { 'x-api-key': KEY }
  t.match((await ask('GET', '/admin/identities', key)).json(), [{ id: FLOW }])
  t.equal((await ask('POST', '/admin/identities', key, '{}')).status, 201)
  t.equal((await ask('DELETE', `/admin/identities/${FLOW}`, key)).status, 204)
  t.equal((await ask('GET', '/health/ready', key)).status, 200)
  const strangers: Record<string, string>[] = [{}, { 'x-api-key': 'wrong' }, BROWSER]
  for (const headers of strangers) {
    t.equal((await ask('GET', '/admin/identities', headers)).status, 404, JSON.stringify(headers))
  }
  t.equal((await ask('GET', '/self-service/login/browser', key)).status, 404)
})
