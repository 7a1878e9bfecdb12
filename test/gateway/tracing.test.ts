/** `tracing`: which spans an OTLP receiver gets for requests, and which trace fields upstreams get. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { gatewayProcess, strictGatewayYaml, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { type OtlpReceiver, otlpReceiver, type ReceivedSpan } from '../helpers/otlp.js'
import { redisUrl } from '../helpers/redis.js'
import { sleep, waitUntil } from '../helpers/wait.js'

const CLIENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/
const [SERVER, UPSTREAM, INTERNAL] = [2, 3, 1]

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { scarce: ["/scarce/{id}"], rest: ["*"] }
limits: [{ for: [{}], quotas: { scarce: { burst: 1, sustained: 1 }, rest: { burst: 1000, sustained: 10000 } } }]
`,
}

interface Scene {
  readonly receiver: OtlpReceiver
  /** Trace fields that the upstream received, request by request. */
  readonly seen: { readonly traceparent: unknown; readonly tracestate: unknown }[]
  readonly lines: Record<string, unknown>[]
  ask(path: string, headers?: Record<string, string>): ReturnType<typeof send>
  /** Stops the gateway, which sends the remaining spans. */
  drain(): Promise<void>
}

async function scene(t: Test, share: number, options: Partial<TestGatewayOptions> = {}): Promise<Scene> {
  const receiver = await otlpReceiver(t)
  const seen: Scene['seen'] = []
  const upstream = await startApp(t, (req, res) => {
    const { traceparent, tracestate } = req.headers
    seen.push({ traceparent, tracestate })
    if (req.url?.startsWith('/slow')) return
    res.writeHead(req.url?.startsWith('/404') ? 404 : 200).end('ok')
  })
  const gateway = await testGateway(t, {
    upstream,
    timeouts: '{ connect: 1s, head: 200ms, idle: 1s }',
    policies: POLICIES,
    settings: `tracing: { otlp: "${receiver.url}", share: ${share} }`,
    ...options,
  })
  const ask = (path: string, headers = {}) =>
    send(`${gateway.url}${path}`, { headers: { host: 'acme.localhost', ...headers } })
  return { receiver, seen, lines: gateway.lines, ask, drain: gateway.drain }
}

const kinds = (spans: readonly ReceivedSpan[], kind: number) => spans.filter(span => span.kind === kind)

t.test('a request makes four nested spans, and the upstream’s own spans can join them', async t => {
  const { receiver, seen, ask, drain } = await scene(t, 1)
  const answer = await ask('/scarce/canary-path?q=canary-query', {
    authorization: 'Bearer canary-token',
    'user-agent': 'canary-agent',
  })
  await drain()
  const [server, decide, take, upstream] = ['GET /scarce/{id}', 'decide', 'take', 'GET'].map(name =>
    receiver.spans.find(span => span.name === name),
  )
  t.equal(receiver.spans.length, 4)
  t.match(server, {
    kind: SERVER,
    parentSpanId: undefined,
    status: { code: 0 },
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'http.route': '/scarce/{id}',
      'url.path': /^\/scarce\/~[\w-]{16}$/,
      'url.scheme': 'http',
      'server.address': 'acme.localhost',
      'network.protocol.version': '1.1',
      'sluice.request_id': answer.headers['x-request-id'],
      'sluice.project': 'acme',
      'sluice.plan': 'growth',
      'sluice.environment': 'production',
      'sluice.upstream': 'app',
    },
  })
  t.match(decide, {
    kind: INTERNAL,
    parentSpanId: server?.spanId,
    attributes: { 'sluice.decision': 'allow', 'sluice.store': ['memory'] },
  })
  t.match(take, { kind: INTERNAL, parentSpanId: decide?.spanId })
  t.match(upstream, {
    kind: UPSTREAM,
    parentSpanId: server?.spanId,
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'url.full': /^http:\/\/127\.0\.0\.1:\d+\/scarce\/~[\w-]{16}$/,
    },
  })
  t.equal(seen[0]?.traceparent, `00-${upstream?.traceId}-${upstream?.spanId}-01`)
  for (const span of receiver.spans) {
    t.equal(span.traceId, server?.traceId)
    t.ok(span.start <= span.end && span.start >= (server?.start ?? 0n), 'every span lies within the request')
  }
  t.match(receiver.resources[0], { 'service.name': 'sluice', 'service.version': /^\d+\.\d+\.\d+$/ })
  t.notMatch(receiver.raw, /canary/, 'no span holds a path, query, credential or user agent of the client')
})

t.test('before an upstream that folds letter case, both spans tell the same path', async t => {
  const { receiver, ask, drain } = await scene(t, 1, { upstreamSettings: 'caseInsensitivePaths: true' })
  await ask('/Scarce/Canary')
  await drain()
  const path = kinds(receiver.spans, SERVER)[0]?.attributes['url.path']
  t.match(path, /^\/scarce\/~[\w-]{16}$/)
  t.equal(new URL(String(kinds(receiver.spans, UPSTREAM)[0]?.attributes['url.full'])).pathname, path)
})

t.test('a client’s trace is continued, and sampled as the client says', async t => {
  const { receiver, seen, ask, drain } = await scene(t, 0.0001)
  await ask('/a', { traceparent: `${CLIENT}-01`, tracestate: 'vendor=1' })
  await ask('/b', { traceparent: `${CLIENT}-00` })
  await ask('/c', { traceparent: 'nonsense' })
  await drain()
  const [traced, untraced, begun] = seen.map(({ traceparent }) => TRACEPARENT.exec(String(traceparent)))
  t.match([traced?.[1], traced?.[3]], ['0af7651916cd43dd8448eb211c80319c', '01'])
  t.not(traced?.[2], 'b7ad6b7169203331', 'the gateway’s span is the new parent')
  t.equal(seen[0]?.tracestate, 'vendor=1')
  t.match([untraced?.[1], untraced?.[3]], ['0af7651916cd43dd8448eb211c80319c', '00'])
  t.match(begun?.[1], /^(?!0af7651916cd43dd)/, 'an invalid traceparent is not continued')
  t.equal(kinds(receiver.spans, SERVER).length, 1)
  t.equal(kinds(receiver.spans, SERVER)[0]?.parentSpanId, 'b7ad6b7169203331')
})

t.test('an invalid tracestate is dropped, and its trace is continued', async t => {
  const { seen, ask } = await scene(t, 1)
  for (const tracestate of ['nonsense', '', ',', '=1', 'vendor=1,nonsense']) {
    await ask('/a', { traceparent: `${CLIENT}-01`, tracestate })
  }
  t.same(
    seen.map(({ tracestate }) => tracestate),
    [undefined, undefined, undefined, undefined, 'vendor=1'],
  )
  for (const { traceparent } of seen) t.match(traceparent, CLIENT.slice(0, 35))
})

t.test('refusals and errors are marked', async t => {
  const { receiver, ask, drain } = await scene(t, 1)
  for (const path of ['/scarce/1', '/scarce/2', '/slow', '/404', '/%zz']) await ask(path)
  await drain()
  const servers = kinds(receiver.spans, SERVER)
  const of = (status: number) =>
    servers.find(({ attributes }) => attributes['http.response.status_code'] === status)
  t.match(of(429), { attributes: { 'sluice.rule': ['scarce'], 'error.type': 'quota-exceeded' } })
  t.match(of(504), {
    status: { code: 2, message: /no answer/ },
    attributes: { 'error.type': 'upstream-timeout' },
  })
  t.match(of(404), { status: { code: 0 } }, 'a 404 is no error of the server')
  t.match(of(400), { attributes: { 'error.type': 'bad-target' } })
  const upstreams = kinds(receiver.spans, UPSTREAM)
  t.same(
    upstreams.map(({ status }) => status.code ?? 0),
    [0, 2, 2],
    'nothing was forwarded of what was refused, and to a client a 404 is an error',
  )
  t.same(
    receiver.spans
      .filter(({ name }) => name === 'decide')
      .map(({ attributes }) => attributes['sluice.decision']),
    ['allow', 'deny', 'allow', 'allow'],
  )
})

t.test('with tracing off or share 0 the client’s trace fields pass unchanged', async t => {
  const fields = { traceparent: `${CLIENT}-01`, tracestate: 'vendor=1' }
  for (const [share, options] of [
    [0, {}],
    [1, { settings: '' }],
  ] as const) {
    const { receiver, seen, ask, drain } = await scene(t, share, options)
    await ask('/', fields)
    await ask('/')
    await drain()
    t.same(seen, [fields, { traceparent: undefined, tracestate: undefined }])
    t.same(receiver.spans, [])
  }
})

t.test('a receiver that fails or is away affects no request, and is logged once', async t => {
  const { receiver, lines, ask, drain } = await scene(t, 1)
  receiver.status = 400
  for (let i = 0; i < 5; i++) t.equal((await ask('/')).status, 200)
  await drain()
  t.equal(lines.filter(({ msg }) => msg === 'Traces cannot be sent: they are dropped').length, 1)

  const away = await scene(t, 1, { settings: 'tracing: { otlp: "http://127.0.0.1:1", share: 1 }' })
  t.equal((await away.ask('/')).status, 200)
  const since = performance.now()
  await away.drain()
  t.ok(performance.now() - since < 8000, 'the drain does not wait long for the receiver')
  t.equal(away.lines.filter(({ msg }) => msg === 'Traces cannot be sent: they are dropped').length, 1)
})

t.test('workers send spans, and a call to Redis is a client span', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const receiver = await otlpReceiver(t)
  const upstream = await startApp(t, (_req, res) => res.end('ok'))
  const yaml = strictGatewayYaml(redis, upstream).replace('port: 0,', 'port: 0, workers: 2,')
  const folder = writeConfig(t, `${yaml}tracing: { otlp: "${receiver.url}", share: 1 }\n`, POLICIES)
  const gateway = await gatewayProcess(t, folder)
  for (let i = 0; i < 8; i++) await send(gateway.url, { headers: { host: 'acme.localhost' } })
  await sleep(50)
  gateway.signal('SIGTERM')
  t.same(await gateway.exited(), [0, null])
  await waitUntil('the spans', () => receiver.spans.length === 32)
  t.match(
    receiver.spans.find(({ name }) => name === 'take'),
    {
      kind: UPSTREAM,
      attributes: { 'db.system.name': 'redis' },
    },
  )
})

/** A loader hook that makes Node behave as if a package were not installed. */
function without(t: Test, name: string): string {
  const folder = t.testdir({
    'hooks.mjs': `export const resolve = (asked, context, next) => {
      if (asked !== '${name}') return next(asked, context)
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    }`,
    // Newer versions of Node warn of `register`, older ones lack `registerHooks`.
    'register.mjs': `import * as module from 'node:module'
      import { resolve } from './hooks.mjs'
      if (module.registerHooks) module.registerHooks({ resolve })
      else module.register('./hooks.mjs', import.meta.url)`,
  })
  return `--import=${join(folder, 'register.mjs')}`
}

t.test(
  'a start without the OpenTelemetry packages names them when tracing is on, and works when it is off',
  async t => {
    const missing = { NODE_OPTIONS: without(t, '@opentelemetry/sdk-trace-base') }
    const yaml =
      'version: 1\nlisten: { port: 0 }\nadmin: { port: 0 }\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n'
    const tracing = writeConfig(t, `${yaml}tracing: { otlp: "http://127.0.0.1:1" }\n`, {})
    await t.rejects(gatewayProcess(t, tracing, missing), {
      message: /ended with 1: .*tracing needs OpenTelemetry's packages.*npm install @opentelemetry\/api/s,
    })
    t.ok(await gatewayProcess(t, writeConfig(t, yaml, {}), missing))
  },
)
