/** `refuse: { fields: none }`: no response tells the numbers of a bucket or rule. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'

const BUCKETS = `version: 1
kind: project-limits
buckets:
  quiet: { match: ["/quiet"], refuse: { fields: none } }
  calls: { match: ["POST /rpc"], key: [project, json-rpc], refuse: { fields: none } }
  open: ["*"]
limits:
  - for: [{}]
    quotas:
      quiet: { sustained: 1, trial: { sustained: 1 } }
      calls: { sustained: 1 }
      open: { sustained: 41 }
`
const RULES = `version: 1
kind: in-flight
rules:
  - { id: single, match: ["POST /slow"], key: [project], max: 1, refuse: { fields: none } }
`
const FLOOD = `version: 1
kind: volumetric
rules:
  - { id: flood, match: ["POST /flood"], key: [project], quota: { requests: 1, per: 60s }, refuse: { fields: none } }
`
const FIELDS = [
  'ratelimit',
  'ratelimit-policy',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

async function start(t: Test, answer = (_req: IncomingMessage, res: ServerResponse): void => void res.end()) {
  const upstream = await startApp(t, answer)
  const policies = { 'limits.yaml': BUCKETS, 'in-flight.yaml': RULES, 'flood.yaml': FLOOD }
  const settings = 'quotaPath: /.well-known/quota\nlog: { decisions: all }'
  const gateway = await testGateway(t, { upstream, policies, settings })
  const ask = (path: string, method = 'GET', body = '') =>
    send(gateway.url + path, {
      method,
      headers: {
        host: 'acme.localhost',
        'content-type': 'application/json',
        'content-length': String(body.length),
      },
      body,
    } as never)
  return { gateway, ask }
}

const shown = (headers: Record<string, unknown>) => FIELDS.filter(name => headers[name] !== undefined)

t.test('a bucket that hides its numbers tells them neither when it admits nor when it refuses', async t => {
  const { ask } = await start(t)
  const admitted = await ask('/quiet')
  t.equal(admitted.status, 200)
  t.same(shown(admitted.headers), [])
  const refused = await ask('/quiet')
  t.equal(refused.status, 429)
  t.same(shown(refused.headers), [])
  const body = refused.json<Record<string, unknown>>()
  t.match(body, { code: 'quota-exceeded', 'violated-policies': ['quiet.sustained'] })
  t.match(body.detail, /^Bucket quiet admits no more requests for now\. Try again in /)
  t.ok(Number(refused.headers['retry-after']) >= 59, 'when to come back is told all the same')
  const open = await ask('/open')
  t.match(open.headers.ratelimit, /^"open\.sustained";r=40/, 'another bucket shows its own')
})

t.test('the body of a refused batch has no numbers of its bucket', async t => {
  const { ask } = await start(t)
  const calls = [1, 2].map(id => ({ jsonrpc: '2.0', method: 'add', id }))
  const refused = await ask('/rpc', 'POST', JSON.stringify(calls))
  t.equal(refused.status, 429)
  t.match(refused.body, 'Bucket calls admits no batch of this size. Send fewer calls at a time.')
})

t.test('an in-flight rule that hides its numbers leaves those of the bucket', async t => {
  let arrived = () => {}
  let finish = () => {}
  const isWaiting = new Promise<void>(resolve => {
    arrived = resolve
  })
  const { ask } = await start(t, (_req, res) => {
    finish = () => void res.end()
    arrived()
  })
  const first = ask('/slow', 'POST')
  await isWaiting
  const refused = await ask('/slow', 'POST')
  t.equal(refused.status, 429)
  t.match(refused.json(), {
    code: 'quota-exceeded',
    'violated-policies': ['single'],
    detail: /^Rule single admits no more requests to this resource while others are in flight\./,
  })
  t.match(refused.headers['ratelimit-policy'], /^"open\.sustained";q=41;w=60$/)
  finish()
  t.equal((await first).status, 200)
})

t.test('a volumetric rule keeps the code of its refusals', async t => {
  const { ask } = await start(t)
  await ask('/flood', 'POST')
  t.match((await ask('/flood', 'POST')).json(), { code: 'abnormal-usage', 'violated-policies': ['flood'] })
})

t.test('customers are not told at quotaPath, operators are in decision records and counters', async t => {
  const { ask, gateway } = await start(t)
  await ask('/quiet')
  const { buckets } = (await ask('/.well-known/quota')).json<{ buckets: { bucket: string }[] }>()
  t.same(
    buckets.map(({ bucket }) => bucket),
    ['open'],
  )
  const counters = await send(`${gateway.adminUrl}/projects/acme/counters`)
  t.match(counters.body, '"quiet"')
  t.match(JSON.stringify(gateway.lines), /"quiet\.sustained"/)
})
