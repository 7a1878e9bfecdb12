/** Tokens of a real issuer, oidc-provider: its clients are the projects, its key set is read over HTTP. */
import t, { type Test } from 'tap'
import { holdClocks } from '../../helpers/clocks.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { waitUntil } from '../../helpers/wait.js'
import { API, startOidcIssuer } from './jwt/oidc-issuer.js'

const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production }
`

async function start(t: Test, audience = API) {
  const upstream = await startApp(t, (req, res) => {
    res.end(`${req.headers['x-sluice-project']} ${req.headers['x-sluice-plan']}`)
  })
  const issuer = await startOidcIssuer(t)
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    routeSettings: 'auth: required, scopes: ["orders:read"]',
    settings: `identify: [{ plugin: jwt, issuer: "${issuer.url()}", audience: "${audience}", jwks: "${issuer.jwks()}", project: client_id, plan: plan, clockTolerance: 0s, allowPrivate: true }]\n`,
  })
  const get = (token?: string) =>
    send(
      `${gateway.url}/orders`,
      token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
    )
  const status = async (token?: string) => (await get(token)).status
  return { ...gateway, issuer, get, status }
}

t.test("a client's token is let in; a listed client has its own plan, another that of the claim", async t => {
  const { issuer, get } = await start(t)
  t.match(await get(await issuer.token()), { status: 200, body: 'acme growth' })
  t.match(await get(await issuer.token({ client: 'other' })), { status: 200, body: 'other scale' })
})

t.test(
  '401 without a token and for each that is not for this API; 403 for a token of another scope',
  async t => {
    const { issuer, get, status } = await start(t)
    t.match(await get(), { status: 401, headers: { 'www-authenticate': 'Bearer' } })
    t.equal(await status(await issuer.token({ resource: 'https://another.example.com' })), 401, 'another API')
    t.equal(await status(await issuer.token({ resource: 'urn:opaque' })), 401, 'an opaque token')
    const refused = await get(await issuer.token({ scope: 'orders:write' }))
    t.equal(refused.status, 403)
    t.match(refused.json(), { code: 'insufficient-scope' })
    t.equal(await status(await issuer.token({ scope: 'orders:write orders:read' })), 200)
  },
)

t.test('a token is let in until it expires, although it was verified before', async t => {
  const { issuer, status } = await start(t, `${API}/short`)
  const token = await issuer.token({ resource: `${API}/short` })
  t.equal(await status(token), 200)
  await waitUntil('its end', async () => (await status(token)) === 401)
})

t.test(
  'when the issuer restarts with another key, its new tokens are let in and its old ones no longer',
  async t => {
    const { issuer, status } = await start(t)
    const clock = holdClocks(t, Date.now())
    const old = await issuer.token()
    t.equal(await status(old), 200)
    await issuer.stop()
    await issuer.start()
    t.equal(await status(old), 200, 'nobody has asked for the new set yet')
    const second = await issuer.token()
    t.equal(await status(second), 200, 'a key that is not known yet leads to the issuer')
    t.equal(await status(old), 401)
    await issuer.stop()
    await issuer.start()
    const third = await issuer.token()
    t.equal(await status(third), 401, 'it is asked for unknown keys once in 30 s')
    t.equal(await status(second), 200)
    clock.ms += 30_001
    t.equal(await status(third), 200)
    t.equal(await status(second), 401)
  },
)

t.test('while the issuer is away its tokens are still verified, new ones too', async t => {
  const { issuer, status, reloader } = await start(t)
  const [seen, unseen] = [await issuer.token(), await issuer.token()]
  t.equal(await status(seen), 200)
  await issuer.stop()
  t.equal(await status(seen), 200)
  t.equal(await status(unseen), 200)
  await reloader.reload('admin')
  t.equal(await status(seen), 200)
})

t.test('a gateway starts while its issuer is away, says so with 503, and recovers by itself', async t => {
  const issuer = await startOidcIssuer(t)
  const token = await issuer.token()
  await issuer.stop()
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const { url } = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    routeSettings: 'auth: required',
    settings: `identify: [{ plugin: jwt, issuer: "${issuer.url()}", audience: "${API}", jwks: "${issuer.jwks()}", project: client_id, allowPrivate: true }]\n`,
  })
  const get = (bearer: string) => send(`${url}/x`, { headers: { authorization: `Bearer ${bearer}` } })
  const early = await get(token)
  t.equal(early.status, 503)
  t.match(early.json(), { code: 'credential-unchecked' })
  await issuer.start()
  const fresh = await issuer.token()
  await waitUntil('the key set', async () => (await get(fresh)).status === 200)
})
