/** What is promised of log lines: their documented fields, and which requests have a line. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { documentedNames } from '../helpers/documented.js'
import { type TestGateway, testGateway } from '../helpers/gateway.js'
import { send } from '../helpers/http.js'
import { matchList } from '../helpers/lists.js'
import { OK, type RawPeer, rawClient, rawUpstream } from '../helpers/raw.js'
import { waitUntil } from '../helpers/wait.js'

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const text = Type.String()
const count = Type.Integer({ minimum: 0 })
const Id = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' })
const Hash = Type.String({ pattern: '^[\\w-]{16}$' })
const common = {
  level: Type.Union([Type.Literal('info'), Type.Literal('warn')]),
  v: Type.Literal(1),
  ts: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
  id: Id,
  client_request_id: orNull(text),
  traceparent: orNull(text),
  upstream: text,
  limiter_us: count,
  duration_ms: count,
  waited_ms: Type.Optional(count),
  messages: Type.Optional(
    Type.Array(Type.Object({ rule: text, mode: text, admitted: count, refused: count })),
  ),
}
const Request = Type.Object(
  {
    ...common,
    msg: Type.Literal('request'),
    method: orNull(text),
    path: orNull(text),
    project: orNull(text),
    credential: orNull(text),
    credential_fault: Type.Optional(text),
    identifier: orNull(text),
    ip: orNull(text),
    status: count,
    source: Type.Union([Type.Literal('upstream'), Type.Literal('gateway')]),
    error: orNull(text),
    cause: orNull(text),
    address: orNull(text),
    bytes_in: count,
    bytes_out: count,
    upstream_ms: orNull(count),
  },
  { additionalProperties: false },
)
const Counter = Type.Object({
  policy: text,
  q: count,
  used: orNull(count),
  t_ms: count,
  w_ms: orNull(count),
})
const Decision = Type.Object(
  {
    ...common,
    msg: Type.Literal('decision'),
    decision: Type.Union(
      ['allow', 'deny', 'would_deny', 'error_open', 'error_closed'].map(one => Type.Literal(one)),
    ),
    mode: Type.Union([Type.Literal('enforce'), Type.Literal('report-only')]),
    rule: orNull(text),
    kind: orNull(text),
    enforce_for: Type.Optional(Type.Number()),
    mode_src: Type.Optional(Type.String()),
    rev: text,
    src: orNull(text),
    project: orNull(text),
    host: Type.Optional(text),
    plan: orNull(text),
    environment: orNull(text),
    method: text,
    route: orNull(text),
    path: text,
    key: orNull(Hash),
    ip: text,
    client: Hash,
    ja3: orNull(text),
    ja4: orNull(text),
    auth: text,
    verified: Type.Boolean(),
    credential: orNull(text),
    credential_fault: Type.Optional(text),
    identifier: orNull(text),
    upgrade: Type.Boolean(),
    preflight: Type.Boolean(),
    parts: Type.Record(text, Hash),
    counters: Type.Array(Counter),
    beside: Type.Array(
      Type.Object({ rule: text, kind: text, result: text, key: Hash, counters: Type.Array(Counter) }),
    ),
    would_status: orNull(count),
    sent_status: count,
    store: text,
    sample: Type.Number(),
  },
  { additionalProperties: false },
)

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { scarce: [/scarce], rest: ["*"] }
limits: [{ for: [{}], quotas: { scarce: { burst: 1, sustained: 1 }, rest: { burst: 1000, sustained: 10000 } } }]
`,
  'watched.yaml': `version: 1
kind: in-flight
rules: [{ id: watched, match: [POST /watched], key: [project, header:x-tenant], missing: deny, max: 1, mode: report-only }]
`,
}

/** Silent at /slow, cut at /cut, failing at /500, not HTTP at /odd, a tunnel at /ws. */
async function upstream(t: Test) {
  const server = await rawUpstream(async (peer: RawPeer) => {
    for (;;) {
      const { line } = await peer.message()
      if (line.includes('/cut')) {
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc')
        peer.socket.end()
      } else if (line.includes('/500')) peer.send('HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nboo')
      else if (line.includes('/odd')) peer.send('SMTP\r\n\r\n')
      else if (line.includes('/ws')) {
        peer.send(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello',
        )
      } else if (!line.includes('/slow')) peer.send(OK)
    }
  })
  t.teardown(() => server.stop())
  return server.url
}

const about = (gateway: TestGateway, msg: string) => gateway.lines.filter(line => line.msg === msg)
const ask = (gateway: TestGateway, path: string, more = {}, method = 'GET') =>
  send(`${gateway.url}${path}`, { method, headers: { host: 'acme.localhost', ...more } }).catch(
    () => undefined,
  )

t.test('every line about a request has exactly the documented fields', async t => {
  const gateway = await testGateway(t, {
    upstream: await upstream(t),
    timeouts: '{ connect: 1s, head: 200ms, idle: 1s }',
    settings: 'log: { decisions: all, access: all }',
    policies: POLICIES,
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await ask(gateway, '/ok', { 'x-request-id': 'mine', traceparent })
  await ask(gateway, '/watched', {}, 'POST')
  for (const path of ['/scarce', '/scarce', '/cut', '/500', '/odd', '/slow', '/%zz']) await ask(gateway, path)
  const broken = await rawClient(Number(new URL(gateway.url).port))
  broken.send('no request\r\n\r\n')
  await broken.message({ tillClose: true })
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  socket.write('GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await once(socket, 'data')
  socket.resetAndDestroy()
  await waitUntil('all lines', () => about(gateway, 'request').length === 11)

  const requests = about(gateway, 'request')
  const decisions = about(gateway, 'decision')
  for (const line of requests) t.same([...Value.Errors(Request, line)], [], `${line.status} ${line.error}`)
  for (const line of decisions) t.same([...Value.Errors(Decision, line)], [], `${line.decision}`)
  t.same(
    requests.map(({ status, error }) => [status, error]).sort(),
    [
      [101, null],
      [200, 'answer-cut'],
      [200, null],
      [200, null],
      [200, null],
      [400, 'bad-request'],
      [400, 'bad-target'],
      [429, 'quota-exceeded'],
      [500, null],
      [502, 'upstream-invalid'],
      [504, 'upstream-timeout'],
    ].sort(),
  )
  t.ok(
    Number(requests.find(({ status }) => status === 101)?.bytes_out) > 5,
    'the bytes through the tunnel are counted',
  )
  t.match(requests[0], { client_request_id: 'mine', traceparent, bytes_out: 2, upstream: 'app' })
  for (const { id } of decisions)
    t.ok(
      requests.some(line => line.id === id),
      'both lines have the same id',
    )
  t.same([...new Set(decisions.map(({ decision }) => decision))].sort(), ['allow', 'deny', 'would_deny'])

  const fields = (schema: { properties: object }) =>
    Object.keys(schema.properties).filter(name => !['level', 'msg'].includes(name))
  t.same(documentedNames('reference/log.md', 'Access records').sort(), fields(Request).sort())
  t.same(documentedNames('reference/log.md', 'Decision records').sort(), fields(Decision).sort())
})

t.test('by default exactly the failed requests have a line, which names upstream and cause', async t => {
  const url = await upstream(t)
  const gateway = await testGateway(t, {
    upstream: url,
    timeouts: '{ connect: 1s, head: 200ms, idle: 1s }',
    policies: POLICIES,
  })
  for (const path of ['/ok', '/scarce', '/scarce', '/%zz']) await ask(gateway, path)
  const leaving = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  leaving.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(leaving, 'connect')
  leaving.destroy()
  for (const path of ['/slow', '/odd', '/cut', '/500']) await ask(gateway, path)
  await waitUntil('the lines', () => about(gateway, 'request').length >= 4)
  const lines = about(gateway, 'request')
  for (const line of lines) t.match(line, { level: 'warn', upstream: 'app', address: url }, `${line.status}`)
  t.same(
    lines.map(({ status, error }) => [status, error]),
    [
      [504, 'upstream-timeout'],
      [502, 'upstream-invalid'],
      [200, 'answer-cut'],
      [500, null],
    ],
    'a client that left is not logged as a failure',
  )
  t.match(lines[0]?.cause, 'no answer within 200 ms')
  t.match(lines[2]?.cause, 'closed the connection')
})

t.test('an unreachable upstream is logged with its address and the reason', async t => {
  const gateway = await testGateway(t, { upstream: 'http://127.0.0.1:1' })
  const answer = await ask(gateway, '/x')
  t.equal(answer?.status, 502)
  matchList(t, about(gateway, 'request'), [
    {
      id: answer?.headers['x-request-id'],
      status: 502,
      source: 'gateway',
      error: 'upstream-unreachable',
      cause: 'connect ECONNREFUSED 127.0.0.1:1',
      address: 'http://127.0.0.1:1',
    },
  ])
})

t.test('a request that could not be counted is logged with the rule', async t => {
  const gateway = await testGateway(t, {
    upstream: 'http://127.0.0.1:1',
    settings: 'redis: redis://127.0.0.1:1\nstore: { onError: closed }',
    policies: POLICIES,
  })
  t.equal((await ask(gateway, '/x'))?.status, 503)
  matchList(t, about(gateway, 'request'), [
    { status: 503, cause: 'rule rest could not be counted', upstream: 'app' },
  ])
})

t.test('access: off writes no request lines', async t => {
  const gateway = await testGateway(t, { upstream: 'http://127.0.0.1:1', settings: 'log: { access: off }' })
  t.equal((await ask(gateway, '/x'))?.status, 502)
  t.same(about(gateway, 'request'), [])
})

t.test('a request that a route has matched names its upstream, even if the gateway answers it', async t => {
  const gateway = await testGateway(t, {
    upstream: 'http://127.0.0.1:9',
    settings: 'log: { access: all }',
    upstreamSettings: 'pathParameters: refuse',
  })
  const headers = { host: 'acme.localhost' }
  t.equal((await send(`${gateway.url}/a;b`, { headers })).status, 400)
  const asked = { method: 'OPTIONS', headers: { ...headers, 'max-forwards': '0' } }
  t.equal((await send(`${gateway.url}/a`, asked)).status, 204)
  const requests = () => gateway.lines.filter(({ msg }) => msg === 'request')
  await waitUntil('both lines', () => requests().length === 2)
  t.same(
    requests().map(({ status, upstream }) => [status, upstream]),
    [
      [400, 'app'],
      [204, 'app'],
    ],
  )
})
