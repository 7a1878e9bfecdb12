/** Tokens that are made to be expensive, to be mistaken for others, or to get others refused. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { base64url, CompactSign, exportJWK } from 'jose'
import t, { type Test } from 'tap'
import { VerifiedTokens } from '../../../../gateway/identify/jwt/verified-tokens.js'
import { Verifier } from '../../../../gateway/identify/jwt/verifier.js'
import { testGateway } from '../../../helpers/gateway.js'
import { send, startApp } from '../../../helpers/http.js'
import { temporaryFolder } from '../../../helpers/scope.js'
import { waitUntil } from '../../../helpers/wait.js'
import { AUDIENCE, ISSUER, type Key, newKey, startIssuer, token } from './issuer.js'

const HASH = createHash('sha256').update('right').digest('hex')
const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production }
  - { id: keyed, plan: growth, environment: production, apiKeyHashes: ["${HASH}"] }
`
const key = await newKey('one')

/** A gateway with an issuer of these keys, and API keys. */
async function start(t: Test, keys: readonly object[], { status = 200, jwks = '', more = '' } = {}) {
  const upstream = await startApp(t, (_req, res) => res.end('ok'))
  const issuer = await startIssuer(t, [])
  issuer.body = JSON.stringify({ keys })
  issuer.status = status
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    routeSettings: 'auth: required',
    settings: `identify: [${more}{ plugin: jwt, issuer: "${ISSUER}", audience: ${AUDIENCE}, jwks: "${jwks || issuer.url}", project: azp, allowPrivate: true }, api-key]\nlog: { decisions: all }\n`,
  })
  const get = async (bearer?: string, apiKey?: string) =>
    (
      await send(`${gateway.url}/x`, {
        headers: {
          ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
          ...(apiKey !== undefined && { 'x-api-key': apiKey }),
        },
      })
    ).status
  const fault = async () => {
    await waitUntil('a line', () => gateway.lines.some(({ msg }) => msg === 'request'))
    return gateway.lines.findLast(({ msg }) => msg === 'request')?.credential_fault
  }
  return { ...gateway, issuer, get, fault }
}

const signed = (by: Key, header: object, claims: string) =>
  new CompactSign(Buffer.from(claims)).setProtectedHeader({ alg: by.alg, ...header }).sign(by.privateKey)
const claims = (more = '') =>
  `{"iss":"${ISSUER}","aud":"${AUDIENCE}","exp":${Math.floor(Date.now() / 1000) + 300},"azp":"acme"${more}}`

t.test('a token has one spelling', async t => {
  const { get } = await start(t, [key.jwk])
  const right = await token(key)
  t.equal(await get(right), 200)
  const [head = '', payload = '', signature = ''] = right.split('.')
  const last = signature.at(-1) as string
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const other = letters[letters.indexOf(last) + 1] as string
  const spellings = {
    blank: `${head}.${payload}.${signature.slice(0, 5)} ${signature.slice(5)}`,
    tab: `${head}.${payload}.${signature.slice(0, 5)}\t${signature.slice(5)}`,
    padding: `${right}=`,
    'unused bits': right.slice(0, -1) + other,
    base64: right.replace(/[-_]/g, char => (char === '-' ? '+' : '/')).concat('='),
    'blank in the payload': `${head}.${payload} .${signature}`,
    'four parts': `${right}.`,
  }
  for (const [name, spelling] of Object.entries(spellings)) t.equal(await get(spelling), 401, name)
})

t.test('remembered tokens are bounded, with all that they say', t => {
  const tokens = new VerifiedTokens()
  const scopes = Array.from({ length: 5000 }, (_, i) => `s${i}`)
  const project = { id: 'a', plan: 'p', environment: 'e', scopes }
  for (let i = 0; i < 1000; i++) tokens.set(`token-${i}`, project, 1e10)
  const kept = Array.from({ length: 1000 }, (_, i) => tokens.get(`token-${i}`, 0)).filter(Boolean).length
  t.ok(kept > 50 && kept < 250, `${kept} tokens of 220 kB`)
  t.end()
})

t.test('tokens that wait to be verified are bounded', async t => {
  const settings = {
    ...{ issuer: ISSUER, audience: AUDIENCE, audienceClaim: 'aud', algorithms: ['ES256'] },
    clockTolerance: 0,
  }
  let answer: (error: Error) => void = () => undefined
  const never = new Promise<never>((_, reject) => {
    answer = reject
  })
  const verifier = new Verifier(
    settings,
    () => never,
    () => 'nobody',
  )
  const made = await token(key)
  const asked = Array.from({ length: 1000 }, (_, i) =>
    Promise.resolve(verifier.projectOf(`${made.slice(0, -4)}${String(i).padStart(3, '0')}A`)).catch(String),
  )
  await t.rejects(Promise.resolve(verifier.projectOf(made)), /too many tokens at once/)
  answer(new Error('away'))
  await Promise.all(asked)
  await t.rejects(Promise.resolve(verifier.projectOf(made)), /away/, 'and there is room again')
})

t.test('of several keys that fit a token, the one that signed it counts', async t => {
  const [first, second, third] = await Promise.all(['same', 'same', 'other'].map(kid => newKey(kid)))
  const anonymous = [first, second, third].map(one => ({ ...one?.jwk, kid: undefined }))
  const same = await start(t, [first?.jwk as object, second?.jwk as object])
  t.equal(await same.get(await token(first as Key)), 200)
  t.equal(await same.get(await token(second as Key)), 200)
  t.equal(await same.get(await token({ ...(third as Key), kid: 'same' })), 401)
  t.equal(await same.fault(), 'signature')
  const none = await start(t, anonymous)
  for (const one of [first, second, third]) {
    t.equal(await none.get(await token(one as Key, { header: { kid: undefined } })), 200)
  }
})

t.test('a signed token with a name twice is refused, in its header too', async t => {
  const { get, fault } = await start(t, [key.jwk])
  t.equal(await get(await signed(key, { kid: 'one' }, claims())), 200)
  t.equal(await get(await signed(key, { kid: 'one' }, claims(',"azp":"keyed"'))), 401)
  t.equal(await fault(), 'duplicate claim')
})

t.test('what nobody has verified is not read at length', async t => {
  const { get, fault } = await start(t, [key.jwk])
  const names = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`name${i}`, 1]))
  t.equal(await get(await signed(key, { kid: 'one', ...names }, claims())), 401)
  t.equal(await fault(), 'header too long')
  const deep = `{"iss":"${ISSUER}","a":${'['.repeat(5400)}${']'.repeat(5400)}}`
  const forged = `${base64url.encode('{"alg":"ES256","kid":"one"}')}.${base64url.encode(deep)}.${'A'.repeat(86)}`
  t.equal(await get(forged), 401)
})

t.test('a token whose key the set does not have yet is refused, and not counted as a guess', async t => {
  const { get, issuer } = await start(t, [key.jwk])
  t.equal(await get(await token(key)), 200)
  const next = await newKey('next')
  t.equal(await get(await token({ ...next, kid: 'made-up' })), 401, 'takes the one reading in 30 s')
  issuer.body = JSON.stringify({ keys: [key.jwk, next.jwk] })
  const early = await token(next)
  for (let i = 0; i < 110; i++) if ((await get(early)) !== 401) t.fail(`throttled after ${i}`)
  for (let i = 0; i < 40; i++) await get(early, `guess-${i}`)
  t.equal(await get(early, 'guess'), 429, 'such a token hides no guessed key')
})

t.test('a guessed key is counted while an issuer was never read; a token of that issuer is not', async t => {
  const { get } = await start(t, [], { status: 500 })
  const early = await token(key)
  for (let i = 0; i < 25; i++) if ((await get(early)) !== 503) t.fail(`throttled after ${i}`)
  t.equal(await get(early, 'guess'), 503)
  for (let i = 0; i < 25; i++) await get(early, `guess-${i}`)
  t.equal(await get(early, 'guess'), 429)
  t.equal(await get(early, 'right'), 200)
})

t.test('a request that is verified has no fault in its record, whoever was asked before', async t => {
  const other = `{ plugin: jwt, issuer: "https://other.example/", audience: ${AUDIENCE}, jwks: "https://other.example/", project: azp }, `
  const { get, lines } = await start(t, [key.jwk], { more: other })
  t.equal(await get(await token(key)), 200)
  t.equal(await get(await token(key, { expires: 1 })), 401)
  for (const result of ['verified', 'invalid']) {
    await waitUntil(result, () => lines.some(({ credential }) => credential === result))
  }
  const faults = lines.filter(line => 'credential_fault' in line).map(({ credential }) => credential)
  t.same([...new Set(faults)], ['invalid'])
})

t.test('a file of keys none of which is for one of the algorithms is a fault when it is loaded', async t => {
  const jwks = join(temporaryFolder(t, 'jwks'), 'jwks.json')
  writeFileSync(jwks, JSON.stringify({ keys: [(await newKey('a', 'ES384')).jwk] }))
  await t.rejects(start(t, [], { jwks }), /No key of the file .* is for one of "algorithms" \(RS256, ES256\)/)
  writeFileSync(jwks, JSON.stringify({ keys: [{ ...key.jwk, alg: undefined }] }))
  t.equal(await (await start(t, [], { jwks })).get(await token(key)), 200)
})

t.test('a private key in a file is a fault; while the gateway runs it is skipped, and told', async t => {
  const jwks = join(temporaryFolder(t, 'jwks'), 'jwks.json')
  const write = (...keys: object[]) => writeFileSync(jwks, JSON.stringify({ keys }))
  const secret = await exportJWK(key.privateKey)
  write(key.jwk, { ...secret, kid: 'k2' })
  await t.rejects(start(t, [], { jwks }), /has a private key, keys\[1\]: a key set holds public keys only/)
  write(key.jwk)
  const { get, lines } = await start(t, [], { jwks })
  t.equal(await get(await token(key)), 200)
  write({ ...secret, kid: key.kid })
  await waitUntil('it is skipped', async () => (await get(await token(key))) === 401)
  const told = lines.filter(({ msg }) => String(msg).startsWith('Keys of a key set are skipped'))
  t.match(told, [{ level: 'warn', jwks, keys: ['keys[0] is a private key'] }])
  t.notMatch(JSON.stringify(lines), secret.d as string)
})

t.test('a key that cannot be used stands in the way of no other that fits', async t => {
  const rsa = await newKey('one', 'RS256')
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const useless = [weak, { kty: 'RSA', e: 'AQAB' }, { kty: 'RSA', n: 7, e: 'AQAB' }, { kty: 'made-up' }, {}]
  const others = await Promise.all([1, 2, 3].map(async () => (await newKey('one', 'RS256')).jwk))
  const keys = [...useless, ...others, rsa.jwk].map(one => ({ ...one, kid: 'one' }))
  const { get } = await start(t, keys)
  t.equal(await get(await token(rsa)), 200)
  t.equal(await get(await token(rsa, { expires: 1 })), 401)
  t.equal(await get(await token(rsa, { header: { kid: undefined } })), 200)
})
