/** Negotiated limits of projects that projects.yaml does not list, but that credentials may name. */
import t, { type Test } from 'tap'
import { sluice } from '../../helpers/command.js'
import { send } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { waitUntil } from '../../helpers/wait.js'
import { AUDIENCE, ISSUER, newKey, startIssuer, token } from '../identify/jwt/issuer.js'
import { start } from './negotiating.js'

const key = await newKey('one')

/** A gateway that knows projects by tokens; `more` are further settings of that. */
async function startWithTokens(t: Test, more = '', settings = '') {
  const { url } = await startIssuer(t, [key])
  const jwt = `{ plugin: jwt, issuer: "${ISSUER}", audience: ${AUDIENCE}, jwks: "${url}", project: azp, plan: plan, allowPrivate: true${more} }`
  const gateway = await start(t, `identify: [${jwt}, host]\n${settings}`)
  return {
    ...gateway,
    async admittedAs(azp: string, plan: string) {
      const headers = { authorization: `Bearer ${await token(key, { claims: { azp, plan } })}` }
      for (let i = 0; i < 60; i += 1) {
        if ((await send(`${gateway.url}/x`, { headers })).status !== 200) return i
      }
      return 60
    },
  }
}

t.test('a project that only tokens name can have a limit of its own, whatever its plan', async t => {
  const { admittedAs, put, json, set, explain, adminUrl } = await startWithTokens(t)
  const made = await put('partner-7', 'all', { sustained: 6 })
  t.match(made, { status: 201 })
  t.match(made.json(), { listed: false, in_force: true })
  t.equal(await admittedAs('partner-7', 'growth'), 6)
  t.equal(await admittedAs('partner-7', 'enterprise'), 0, 'it is one project with one counter')
  t.equal(await admittedAs('partner-8', 'growth'), 3)
  const bearer = `Bearer ${await token(key, { claims: { azp: 'partner-7' } })}`
  t.match(await explain('/x', { headers: [['authorization', bearer]] }), {
    project: { id: 'partner-7' },
    rules: [{ negotiated: { set_by: 'anna' } }],
  })
  t.equal((await put('acme', 'all', { sustained: 7 })).status, 201)
  t.equal(await admittedAs('acme', 'enterprise'), 7, 'one that is listed has its limit by a token, too')
  matchList(t, await set(), [
    { project: 'partner-7', listed: false },
    { project: 'acme', listed: true },
  ])
  t.match(await json('/projects/partner-7/overrides'), {
    listed: false,
    overrides: [{ quota: { sustained: 6 } }],
  })
  t.match(await json('/projects/acme/overrides'), { listed: true })
  t.match(await sluice(['override', 'list', 'acmee', '--live', adminUrl]), {
    code: 0,
    out: 'acmee has no negotiated limit.\n',
    err: 'acmee is not in projects.yaml: it is known only if a credential names it.\n',
  })
})

t.test('it can be locked out by an access entry of the admin port', async t => {
  const { admittedAs, adminUrl } = await startWithTokens(t)
  t.equal(await admittedAs('leaky', 'growth'), 3)
  const deny = (project: string) =>
    send(`${adminUrl}/access/leak`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ projects: [project], action: 'deny', why: 'leaked' }),
    })
  t.ok((await deny('client:1.2.3.4')).status >= 400)
  t.match(await deny('other'), { status: 201 })
  t.equal(await admittedAs('other', 'growth'), 0)
})

t.test('its limit must be valid for every plan that a token could give it', async t => {
  const { put } = await startWithTokens(t)
  t.match(await put('partner-7', 'search', { algorithm: 'token-bucket' }), {
    status: 422,
    body: /no quota for developer\/development/,
  })
  t.match(await put('partner-7', 'search', { sustained: 1 }), { status: 201 })
})

t.test('where no credential can name it, it is unknown', async t => {
  const known = await startWithTokens(t, ', projects: known')
  t.match(await known.put('partner-7', 'all', { burst: 1 }), { status: 422, body: /Unknown project/ })
  const rejecting = await startWithTokens(t, '', 'unknownProject: reject')
  t.match(await rejecting.put('partner-7', 'all', { burst: 1 }), { status: 422, body: /Unknown project/ })
})

t.test('neither a token nor a limit can name a caller without a project', async t => {
  const { put, url, lines } = await startWithTokens(t, '', 'log: { decisions: all }')
  for (const id of ['client:127.0.0.1', 'host:localhost', 'unknown:all']) {
    t.match(await put(id, 'all', { burst: 1 }), { status: 422, body: /is a caller without a project/ })
  }
  t.match(await put('a b', 'all', { burst: 1 }), { status: 422, body: /Unknown project/ })
  const bearer = await token(key, { claims: { azp: 'client:203.0.113.7' } })
  await send(`${url}/x`, { headers: { authorization: `Bearer ${bearer}` } })
  const record = await waitUntil('its record', () => lines.find(({ decision }) => decision !== undefined))
  t.match(record, { verified: false, project: /^client:127\.0\.0\.0\// })
})
