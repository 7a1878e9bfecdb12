import assert from 'node:assert/strict'
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { jwtClaim } from '../jwt-claim.js'
import { costOf, requestCost } from '../request-cost.js'

const KEY = 'a secret of thirty-two characters'
const projects = [{ id: 'acme', plan: 'growth', environment: 'production' }]
const soon = () => Math.floor(Date.now() / 1000) + 60

const encode = value => Buffer.from(JSON.stringify(value)).toString('base64url')
function hs256(claims, { key = KEY, alg = 'HS256' } = {}) {
  const text = `${encode({ alg, typ: 'JWT' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}
const bearing = token => ({ header: name => (name === 'authorization' ? `Bearer ${token}` : undefined) })

function identifier(config) {
  return jwtClaim.create({ algorithm: 'HS256', key: KEY, claim: 'project', ...config }, { projects })
}

test('a signed token names its project, again and again', () => {
  const { identify } = identifier()
  const facts = bearing(hs256({ project: 'acme', exp: soon() }))
  assert.equal(identify(facts)?.id, 'acme')
  assert.equal(identify(facts)?.id, 'acme')
})

test('whatever is wrong with a token, nobody is identified', () => {
  const { identify } = identifier({ issuer: 'https://id.example', audience: 'api' })
  const good = { project: 'acme', exp: soon(), iss: 'https://id.example', aud: ['api', 'web'] }
  assert.equal(identify(bearing(hs256(good)))?.id, 'acme')
  const wrong = {
    'signed by another': hs256(good, { key: 'another secret of that many letters' }),
    'none as its algorithm': `${encode({ alg: 'none' })}.${encode(good)}.AA`,
    'another algorithm': hs256(good, { alg: 'RS256' }),
    over: hs256({ ...good, exp: soon() - 120 }),
    endless: hs256({ ...good, exp: undefined }),
    'not yet': hs256({ ...good, nbf: soon() }),
    'another issuer': hs256({ ...good, iss: 'https://evil.example' }),
    'another audience': hs256({ ...good, aud: 'web' }),
    'an unknown project': hs256({ ...good, project: 'nobody' }),
    'a project that is no text': hs256({ ...good, project: { id: 'acme' } }),
    'no JSON': 'a.b.c',
    long: `${'a'.repeat(9000)}.b.c`,
  }
  for (const [what, token] of Object.entries(wrong)) assert.equal(identify(bearing(token)), undefined, what)
  assert.equal(identify({ header: () => undefined }), undefined)
})

test('RS256: the public key verifies, and cannot be used as a secret', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  const { identify } = identifier({ algorithm: 'RS256', key: pem })
  const claims = { project: 'acme', exp: soon() }
  const text = `${encode({ alg: 'RS256' })}.${encode(claims)}`
  const signature = createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')
  assert.equal(identify(bearing(`${text}.${signature}`))?.id, 'acme')
  assert.equal(identify(bearing(hs256(claims, { key: pem }))), undefined)
  assert.equal(identify(bearing(hs256(claims, { key: pem, alg: 'RS256' }))), undefined)
})

test('a key that is missing, given twice or of another kind is told of when the plugin is made', () => {
  assert.throws(() => identifier({ key: undefined }), /either "key" or "keyFile"/)
  assert.throws(() => identifier({ keyFile: 'key.pem' }), /either "key" or "keyFile"/)
  assert.throws(() => identifier({ algorithm: 'RS256' }))
})

test('the longest path that fits says the cost, and a header only from a trusted proxy', () => {
  const config = {
    cost: 1,
    weights: [
      { path: '/reports', cost: 20 },
      { path: '/reports/small/', cost: 5 },
    ],
    header: 'x-cost',
  }
  const facts = (path, trusted, said) => ({ path, trusted, header: () => said })
  assert.equal(costOf(config, facts('/users', false)), 1)
  assert.equal(costOf(config, facts('/reports', false)), 20)
  assert.equal(costOf(config, facts('/reports/2026', false)), 20)
  assert.equal(costOf(config, facts('/reports/small/1', false)), 5)
  assert.equal(costOf(config, facts('/reportsx', false)), 1)
  assert.equal(costOf(config, facts('/reports', false, '1')), 20)
  assert.equal(costOf(config, facts('/reports', true, '1')), 1)
  assert.equal(costOf(config, facts('/reports', true, '-1')), 20)
})

test('the whole cost is demanded at once, and never more than the budget', () => {
  const config = { budget: { units: 100, per: 60_000 }, cost: 20, weights: [] }
  const { demand } = requestCost.create({})
  const rule = { id: 'api-cost', config }
  const meter = { kind: 'meter', quota: 100, ms: 60_000, blockMs: 0 }
  assert.deepEqual(demand({ rule, key: 'k', facts: { path: '/' } }), { ...meter, cost: 20 })
  const dear = { ...rule, config: { ...config, cost: 200 } }
  assert.deepEqual(demand({ rule: dear, key: 'k', facts: { path: '/' } }), { ...meter, cost: 100 })
})
