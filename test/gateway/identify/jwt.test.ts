/** Tokens that name projects, through a whole gateway: who is let in, and who is counted as whom. */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { base64url, SignJWT, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { AUDIENCE, ISSUER, type Key, newKey, startIssuer, token } from './jwt/issuer.js'

const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production }
`

interface Options {
  readonly keys?: readonly Key[]
  /** In place of the issuer's address. */
  readonly jwks?: string
  /** Further keys of the identifier. */
  readonly jwt?: string
  /** Status of the issuer's answers when the gateway starts. */
  readonly status?: number
  readonly route?: string
}

async function start(
  t: Test,
  { keys = [], jwks, jwt = '', status = 200, route = 'auth: required' }: Options = {},
) {
  const upstream = await startApp(t, (req, res) => {
    const { 'x-sluice-project': id, 'x-sluice-plan': plan, 'x-sluice-environment': environment } = req.headers
    res.end(`${id} ${plan} ${environment}`)
  })
  const issuer = await startIssuer(t, keys)
  issuer.status = status
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    routeSettings: route,
    settings: `identify: [{ plugin: jwt, issuer: "${ISSUER}", audience: ${AUDIENCE}, jwks: "${jwks ?? issuer.url}", project: azp, plan: plan, environment: env, allowPrivate: true${jwt} }, host]\n`,
  })
  const get = (bearer?: string, scheme = 'Bearer') =>
    send(
      `${gateway.url}/x`,
      bearer === undefined ? {} : { headers: { authorization: `${scheme} ${bearer}` } },
    )
  return { ...gateway, issuer, get }
}

const key = await newKey('one')

t.test(
  'a token names the project; a listed one has its own plan, another the plan that the token says',
  async t => {
    const { get } = await start(t, { keys: [key] })
    const as = async (claims: Record<string, unknown>) => (await get(await token(key, { claims }))).body
    t.equal(await as({ azp: 'acme', plan: 'enterprise', env: 'staging' }), 'acme growth production')
    t.equal(await as({ azp: 'other', plan: 'scale', env: 'staging' }), 'other scale staging')
    t.equal(await as({ azp: 'other', plan: 'made-up', env: 7 }), 'other developer production')
    t.equal(await as({ azp: 'other' }), 'other developer production')
  },
)

t.test(
  'without a credential 401 names the scheme; every wrong token gets one and the same answer',
  async t => {
    const { get, lines } = await start(t, { keys: [key] })
    const none = await get()
    t.match(none, {
      status: 401,
      headers: { 'www-authenticate': 'Bearer', 'content-type': 'application/problem+json' },
    })
    t.match(none.json(), { code: 'credential-missing', status: 401 })
    const stranger = await newKey('one')
    const now = Math.floor(Date.now() / 1000)
    const hs256 = new SignJWT({ azp: 'acme' })
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('5m')
      .sign(Buffer.from(JSON.stringify(key.jwk).padEnd(64)))
    const twice = async () => {
      const [head = '', , signature = ''] = (await token(key)).split('.')
      const claims = `{"iss":"${ISSUER}","aud":"${AUDIENCE}","exp":${now + 300},"azp":"other","azp":"acme"}`
      return [head, base64url.encode(claims), signature].join('.')
    }
    const wrong: Record<string, string | Promise<string>> = {
      expired: token(key, { expires: now - 60 }),
      'no expiry': new SignJWT({ azp: 'acme' })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .sign(key.privateKey),
      'not yet valid': token(key, { claims: { nbf: now + 600 } }),
      issuer: token(key, { issuer: 'https://evil.example/' }),
      audience: token(key, { audience: 'another' }),
      signature: token(stranger),
      'unknown key': token({ ...stranger, kid: 'two' }),
      none: new UnsecuredJWT({ azp: 'acme' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setExpirationTime('5m')
        .encode(),
      'public key as secret': hs256,
      'duplicate claim': twice(),
      'another purpose': token(key, { header: { typ: 'logout+jwt' } }),
      'unknown critical extension': token(key, { header: { crit: ['exp-not'], 'exp-not': 1 } }).catch(
        () => 'a.b.c',
      ),
      'a key of its own': token(stranger, { header: { jwk: stranger.jwk, kid: undefined } }),
      'no project': token(key, { claims: { azp: undefined } }),
      'project is no id': token(key, { claims: { azp: 'a b' } }),
      'project is a number': token(key, { claims: { azp: 7 } }),
      malformed: 'abc',
      'too long': `${base64url.encode('{"alg":"ES256"}')}.${'a'.repeat(16_400)}.a`,
      'two of them': Promise.all([token(key), token(key)]).then(both => both.join(', Bearer ')),
    }
    const answers = new Set<string>()
    for (const [name, made] of Object.entries(wrong)) {
      const { status, headers, body } = await get(await made)
      t.equal(status, name === 'too long' ? 431 : 401, name)
      if (status === 401) {
        answers.add(
          JSON.stringify([headers['www-authenticate'], body.replaceAll(/urn:uuid:[0-9a-f-]+/g, '')]),
        )
      }
    }
    t.equal(answers.size, 1, 'who guesses learns nothing')
    t.match([...answers][0], /Bearer error=\\"invalid_token\\".*credential-invalid/)
    t.equal((await get(await token(key))).status, 200, 'the right one is still let in')
    t.notMatch(JSON.stringify(lines), /eyJ/, 'no token is in a log')
  },
)

t.test('where a credential is optional, a wrong one is as if it were absent', async t => {
  const { get } = await start(t, { keys: [key], route: 'auth: optional' })
  t.match(await get('abc'), { status: 200, body: /^host:127.0.0.1 developer/ })
  t.match(await get(), { status: 200 })
  t.match(await get(await token(key)), { body: 'acme growth production' })
})

t.test('scopes: all that a route asks for, from scope or scp', async t => {
  const { get } = await start(t, {
    keys: [key],
    route: 'auth: required, scopes: ["orders:read", "orders:write"]',
  })
  const status = async (claims: Record<string, unknown>) => (await get(await token(key, { claims }))).status
  t.equal(await status({ scope: 'orders:write x orders:read' }), 200)
  t.equal(await status({ scp: ['orders:write', 'orders:read'] }), 200)
  t.equal(await status({ scope: 'orders:read' }), 403)
  const refused = await get(await token(key))
  t.match(refused.json(), { code: 'insufficient-scope' })
  t.match(refused.headers, {
    'www-authenticate': 'Bearer error="insufficient_scope", scope="orders:read orders:write"',
  })
})

t.test(
  'scopes come from the claims that are named, by path too: roles of applications are scopes there',
  async t => {
    const { get } = await start(t, {
      keys: [key],
      jwt: ', scopes: [roles, realm_access/roles]',
      route: 'auth: required, scopes: [Orders.Read]',
    })
    const status = async (claims: Record<string, unknown>) => (await get(await token(key, { claims }))).status
    t.equal(await status({ roles: ['Orders.Read', 'x'] }), 200)
    t.equal(await status({ realm_access: { roles: ['Orders.Read'] } }), 200)
    t.equal(await status({ scope: 'Orders.Read', scp: 'Orders.Read' }), 403, 'in place of scope and scp')
    t.equal(await status({ roles: { 'Orders.Read': true }, realm_access: 'Orders.Read' }), 403)
  },
)

t.test('audienceClaim: tokens without aud are for whom another claim names', async t => {
  const { get } = await start(t, { keys: [key], jwt: ', audienceClaim: client_id' })
  const status = async (claims: Record<string, unknown>, audience: string | null = null) =>
    (await get(await token(key, { claims, audience }))).status
  t.equal(await status({ client_id: AUDIENCE }), 200)
  t.equal(await status({ client_id: ['x', AUDIENCE] }), 200)
  t.equal(await status({ client_id: 'another' }, AUDIENCE), 401, 'although aud is right')
  t.equal(await status({ client_id: [[AUDIENCE]] }), 401)
  t.equal(await status({}), 401)
})

t.test(
  'of two issuers each is asked for its own keys alone, and one that is away makes no token wrong',
  async t => {
    const other = await newKey('other')
    const second = await startIssuer(t, [other])
    second.status = 500
    const { get, issuer } = await start(t, {
      keys: [key],
      jwt: `}, { plugin: jwt, issuer: "https://second.example/", audience: ${AUDIENCE}, jwks: "${second.url}", project: azp, allowPrivate: true`,
    })
    const status = async (...asked: Parameters<typeof token>) => (await get(await token(...asked))).status
    t.equal(await status(key), 200)
    t.equal((await get()).headers['www-authenticate'], 'Bearer')
    const before = issuer.asked
    const theirs = { issuer: 'https://second.example/' }
    t.equal(await status(other, theirs), 503)
    t.equal(await status(key, { expires: 1 }), 401)
    second.status = 200
    await waitUntil('the second key set', async () => (await status(other, theirs)) === 200)
    t.equal(issuer.asked, before)
  },
)

t.test('projects: known refuses a project that is not listed', async t => {
  const { get } = await start(t, { keys: [key], jwt: ', projects: known' })
  t.equal((await get(await token(key))).status, 200)
  t.equal((await get(await token(key, { claims: { azp: 'other' } }))).status, 401)
})

t.test(
  'the gateway starts without the issuer; once known, its keys stay while it is away, over reloads too',
  async t => {
    const { get, issuer, reloader, lines } = await start(t, { keys: [key], status: 500 })
    const early = await get(await token(key))
    t.match(early, { status: 503, headers: { 'retry-after': '1' } })
    t.match(early.json(), { code: 'credential-unchecked' })
    t.match(await get('abc'), { status: 401 }, 'what no key could make valid')
    issuer.status = 200
    await waitUntil('the key set', async () => (await get(await token(key))).status === 200)
    issuer.status = 500
    t.equal((await get(await token(key))).status, 200)
    await reloader.reload('admin')
    t.equal((await get(await token(key))).status, 200)
    t.equal(lines.filter(({ msg }) => String(msg).startsWith('a key set cannot be read')).length, 1)
  },
)

t.test('a key of a later set is found at once; made-up key ids are one request to the issuer', async t => {
  const { get, issuer } = await start(t, { keys: [key] })
  await get(await token(key))
  const before = issuer.asked
  const next = await newKey('next', 'RS256')
  issuer.keys = [key, next]
  t.equal((await get(await token(next))).status, 200)
  const made = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => token({ ...next, kid: `made-up-${i}` })),
  )
  const statuses = await Promise.all(made.map(async one => (await get(one)).status))
  t.equal(statuses.filter(status => status === 401 || status === 429).length, 200)
  t.equal(issuer.asked - before, 1)
})

t.test('a right token that comes while an older read is under way is not counted as wrong', async t => {
  const { get, issuer } = await start(t, { keys: [key] })
  await get(await token(key))
  const next = await newKey('next')
  issuer.delay = 800
  const madeUp = get(await token({ ...next, kid: 'made-up' }))
  const before = issuer.asked
  await waitUntil('a read', () => issuer.asked > before)
  issuer.keys = [key, next]
  const right = await Promise.all(Array.from({ length: 30 }, (_, i) => token(next, { claims: { jti: i } })))
  const statuses = await Promise.all(right.map(async one => (await get(one)).status))
  t.equal((await madeUp).status, 401)
  t.same([...new Set(statuses)], [401])
  t.match(await get('abc'), { status: 401 }, 'so that the next wrong one is the first')
})

t.test('a key that leaves the set is no longer trusted, not even for a token that was seen', async t => {
  const folder = temporaryFolder(t, 'jwks')
  const jwks = join(folder, 'jwks.json')
  const write = (...keys: Key[]) => writeFileSync(jwks, JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }))
  const next = await newKey('next')
  write(key, next)
  const { get } = await start(t, { jwks })
  const seen = await token(key)
  t.equal((await get(seen)).status, 200)
  write(next)
  await waitUntil('the file is read again', async () => (await get(seen)).status === 401)
  t.equal((await get(await token(next))).status, 200)
  writeFileSync(jwks, '<html>')
  await sleep(2500)
  t.equal((await get(await token(next))).status, 200, 'what is no key set replaces none')
})

t.test(
  'a FIFO in place of the file holds up neither tokens nor a reload, and the next file counts',
  async t => {
    const jwks = join(temporaryFolder(t, 'jwks'), 'jwks.json')
    const write = ({ jwk }: Key) => writeFileSync(jwks, JSON.stringify({ keys: [jwk] }))
    write(key)
    const { get, reloader, lines } = await start(t, { jwks })
    const seen = await token(key)
    t.equal((await get(seen)).status, 200)
    rmSync(jwks)
    execFileSync('mkfifo', [jwks])
    await waitUntil('the fault', () =>
      lines.some(({ err }) => /It is not a regular file/.test(String((err as Error | undefined)?.message))),
    )
    t.match(await reloader.reload('admin'), {
      problems: [{ message: /cannot be read: It is not a regular/ }],
    })
    t.equal((await get(seen)).status, 200)
    rmSync(jwks)
    const next = await newKey('next')
    write(next)
    await waitUntil('the next set', async () => (await get(await token(next))).status === 200)
    t.equal((await get(seen)).status, 401)
  },
)

t.test('a key set without a key for one of "algorithms" replaces the last one, and is told', async t => {
  const { get, issuer, lines } = await start(t, { keys: [key] })
  const other = await newKey('other')
  const useless = {
    none: [],
    'only a shared secret': [{ kty: 'oct', k: 'AAAA', kid: 'one' }],
    'only for encryption': [{ ...key.jwk, use: 'enc', alg: undefined }],
    'only of another algorithm': [(await newKey('one', 'PS256')).jwk],
  }
  const folder = temporaryFolder(t, 'jwks')
  for (const [name, keys] of Object.entries(useless)) {
    const jwks = join(folder, `${name}.json`)
    writeFileSync(jwks, JSON.stringify({ keys: [key.jwk] }))
    const file = await start(t, { jwks })
    t.equal((await file.get(await token(key))).status, 200)
    writeFileSync(jwks, JSON.stringify({ keys }))
    await waitUntil(name, async () => (await file.get(await token(key))).status === 401)
    const told = () => file.lines.filter(({ msg }) => String(msg).startsWith('A key set has no key for'))
    t.match(told(), [{ level: 'warn', jwks, algorithms: ['RS256', 'ES256'] }], name)
    t.match(await file.reloader.reload('admin'), {
      problems: [{ message: /No key of the file .*\.json is for one of "algorithms"/ }],
    })
  }

  issuer.keys = []
  t.equal((await get(await token(other))).status, 401)
  t.equal((await get(await token(key))).status, 401, 'of an issuer, too')
  t.equal(lines.filter(({ msg }) => String(msg).startsWith('A key set has no key for')).length, 1)
})

t.test('an issuer whose first key set is empty refuses every token', async t => {
  const { get, lines } = await start(t)
  await waitUntil('the set', async () => (await get(await token(key))).status === 401)
  t.match(lines, [{ level: 'warn', msg: /^A key set has no key for/ }])
})
