import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { introspection } from '../introspection.js'
import { costOf, requestCost } from '../request-cost.js'

const projects = [{ id: 'acme', plan: 'growth', environment: 'production' }]
const ACME = { ...projects[0], scopes: ['read', 'write'] }
const bearing = token => ({ header: name => (name === 'authorization' ? `Bearer ${token}` : undefined) })

/** A server that answers as `answers` says by token, and remembers what it was asked. */
async function serverOf(t, answers) {
  const asked = []
  const server = createServer(async (req, res) => {
    let body = ''
    for await (const chunk of req) body += chunk
    const token = new URLSearchParams(body).get('token')
    asked.push(`${req.headers.authorization} ${token}`)
    const answer = answers[token] ?? { active: false }
    if (typeof answer === 'number') res.statusCode = answer
    res.end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const config = { client: 'gate:way', secret: 's%', project: 'client_id', rememberSeconds: 30 }
  const { identify } = introspection.create(
    { ...config, url: `http://127.0.0.1:${server.address().port}/` },
    { projects },
  )
  return { identify, asked }
}

test('an active token names its project and scopes, and is asked for once', async t => {
  const { identify, asked } = await serverOf(t, {
    good: { active: true, client_id: 'acme', scope: 'read write' },
  })
  assert.deepEqual(await Promise.all([identify(bearing('good')), identify(bearing('good'))]), [ACME, ACME])
  assert.deepEqual(identify(bearing('good')), ACME, 'at once, as it is remembered')
  assert.deepEqual(asked, [`Basic ${btoa('gate%3Away:s%25')} good`])
})

test('an inactive token and one of a stranger are wrong credentials; without a token nobody is asked', async t => {
  const { identify, asked } = await serverOf(t, { stranger: { active: true, client_id: 'nobody' } })
  assert.deepEqual(await identify(bearing('old')), { wrongCredential: 'old', reason: 'inactive' })
  assert.deepEqual(await identify(bearing('stranger')), { wrongCredential: 'stranger', reason: 'no project' })
  assert.equal(identify({ header: () => undefined }), undefined)
  assert.equal(identify({ header: () => 'Basic abc' }), undefined)
  assert.equal(asked.length, 2)
})

test('an answer is forgotten when its token expires, and after a failure the server is asked again', async t => {
  const { identify, asked } = await serverOf(t, {
    short: { active: true, client_id: 'acme', exp: Date.now() / 1000 - 1 },
    broken: 500,
  })
  await identify(bearing('short'))
  await identify(bearing('short'))
  await assert.rejects(identify(bearing('broken')), /answers 500/)
  await assert.rejects(identify(bearing('broken')), /answers 500/)
  assert.equal(asked.length, 4)
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
