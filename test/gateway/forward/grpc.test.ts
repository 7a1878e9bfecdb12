/** What a gateway itself says to clients of gRPC. */
import { once } from 'node:events'
import { Metadata, type ServiceError, status } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import t, { type Test } from 'tap'
import { grpcTimeoutMs } from '../../../gateway/forward/grpc.js'
import { Fields } from '../../../gateway/message.js'
import { canMakeCertificates } from '../../helpers/certificates.js'
import { oneBucket } from '../../helpers/policies.js'
import { waitUntil } from '../../helpers/wait.js'
import { ECHO, type GrpcScene, grpcScene, same, unary } from '../http2/client/grpc-scene.js'
import { http2Upstream } from '../http2/client/upstream.js'

const HELLO = Buffer.from('hello')
const TYPES = protobuf.parse(
  `syntax = "proto3";
message Any { string type_url = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message RetryInfo { Duration retry_delay = 1; }`,
  { keepCase: true },
).root

const failure = async ({ client }: Pick<GrpcScene, 'client'>, message = HELLO): Promise<ServiceError> =>
  unary(client, message).then(
    () => {
      throw new Error('the call was answered')
    },
    (error: ServiceError) => error,
  )

/** The access record of the last request. */
const recorded = ({ gateway }: GrpcScene) =>
  waitUntil('the record', () => gateway.lines.findLast(({ error }) => error != null))

/** The status that is sent in full, as another implementation reads it. */
function detailsOf(t: Test, { metadata }: ServiceError) {
  const [bytes] = metadata.get('grpc-status-details-bin')
  if (!(bytes instanceof Buffer)) return undefined
  const read = TYPES.lookupType('Status').decode(bytes).toJSON()
  const [{ type_url, value }] = read.details
  t.equal(type_url, 'type.googleapis.com/google.rpc.RetryInfo')
  const info = TYPES.lookupType('RetryInfo').decode(Buffer.from(value, 'base64')).toJSON()
  return { code: read.code, message: read.message, seconds: Number(info.retry_delay?.seconds ?? 0) }
}

if (canMakeCertificates(t)) {
  for (const isClear of [false, true]) {
    t.test(`over a limit, ${isClear ? 'in the clear' : 'within TLS'}`, async t => {
      const scene = await grpcScene(t, {
        isClear,
        policies: { 'limits.yaml': oneBucket(1) },
        settings: 'log: { access: all }',
      })
      t.equal((await unary(scene.client, HELLO)).answer.toString(), 'hello')
      const error = await failure(scene)
      t.equal(error.code, status.RESOURCE_EXHAUSTED)
      t.match(error.details, /admits 1 request per minute.*Try again in/)
      const details = detailsOf(t, error)
      t.match(details, { code: 8, message: error.details })
      t.ok((details?.seconds ?? 0) > 0 && (details?.seconds ?? 0) <= 60)
      t.same(scene.calls, ['unary'])
      t.match(await recorded(scene), { status: 429 }, 'recorded like the refusal of any request')
    })
  }

  t.test('limits by the path of a method count its calls alone', async t => {
    const policy = `version: 1
kind: project-limits
buckets: { talks: [POST /test.Echo/talk], all: ["*"] }
limits: [{ for: [{}], quotas: { talks: { burst: 1, sustained: 1 }, all: { burst: 9, sustained: 9 } } }]
`
    const { client } = await grpcScene(t, { policies: { 'limits.yaml': policy } })
    const talk = async () => {
      const call = client.makeBidiStreamRequest(ECHO.talk.path, same, same)
      call.on('error', () => {})
      const ended = new Promise(resolve => call.on('status', resolve))
      call.resume().end()
      return ((await ended) as { readonly code: number }).code
    }
    t.equal(await talk(), status.OK)
    t.equal(await talk(), status.RESOURCE_EXHAUSTED)
    t.equal((await unary(client, HELLO)).answer.toString(), 'hello')
  })

  t.test('a stream holds its slot until it ends', async t => {
    const policy = `version: 1
kind: in-flight
rules: [{ id: streams, match: [POST /test.Echo/*], key: [project], max: 1, mode: enforce }]
`
    const scene = await grpcScene(t, { policies: { 'streams.yaml': policy } })
    const call = scene.client.makeBidiStreamRequest(ECHO.talk.path, same, same)
    const echo = once(call, 'data')
    call.write(HELLO)
    await echo
    t.equal((await failure(scene)).code, status.RESOURCE_EXHAUSTED)
    const ended = once(call, 'status')
    call.resume().end()
    await ended
    await waitUntil('the slot is free', () => unary(scene.client, HELLO).then(Boolean, () => false))
  })

  t.test('a call that its client cancels is cancelled at the upstream, and gives its slot back', async t => {
    const policy = `version: 1
kind: in-flight
rules: [{ id: calls, match: [POST /test.Echo/*], key: [project], max: 1, mode: enforce }]
`
    // Longer than the test waits: no timeout of the upstream may end the calls in its place.
    const timeouts = '{ connect: 2s, head: 60s, idle: 60s }'
    const scene = await grpcScene(t, { timeouts, policies: { 'calls.yaml': policy } })
    const answered = () => unary(scene.client, HELLO).then(Boolean, () => false)
    const stream = scene.client.makeServerStreamRequest(ECHO.count.path, same, same, Buffer.from('endless'))
    stream.on('error', () => {})
    await once(stream, 'data')
    stream.cancel()
    await waitUntil('the cancellation of a stream', () => scene.cancelled.includes('count'))
    await waitUntil('its slot', answered)
    const call = scene.client.makeUnaryRequest(ECHO.unary.path, same, same, Buffer.from('wait'), () => {})
    await waitUntil('the call', () => scene.calls.filter(name => name === 'unary').length === 2)
    call.cancel()
    await waitUntil('the cancellation of a call', () => scene.cancelled.includes('unary'))
    await waitUntil('its slot', answered)
  })

  t.test('an upstream that cannot be reached, and a caller who is not known', async t => {
    const away = await grpcScene(t, { upstream: 'http://127.0.0.1:9' })
    t.equal((await failure(away)).code, status.UNAVAILABLE)
    t.match(await recorded(away), { error: 'upstream-unreachable', status: 502 })
    const unknown = await grpcScene(t, {
      routeSettings: 'auth: required',
      settings: 'apiKeys: keys.json\nidentify: [api-key]',
    })
    t.equal((await failure(unknown)).code, status.UNAUTHENTICATED)
    t.same(unknown.calls, [])
  })

  t.test('a call whose time is over is cancelled at the upstream', async t => {
    // Servers of gRPC end such calls by themselves; this one does not.
    const silent = await http2Upstream(t, () => undefined)
    const scene = await grpcScene(t, { upstream: silent.url })
    // Without the client's own deadline, which would end the call at the same time.
    const metadata = new Metadata()
    metadata.set('grpc-timeout', '300m')
    const error = await new Promise<ServiceError | null>(resolve => {
      scene.client.makeUnaryRequest(ECHO.unary.path, same, same, HELLO, metadata, resolve)
    })
    t.equal(error?.code, status.DEADLINE_EXCEEDED)
    const [stream] = silent.streams
    await waitUntil('the cancellation', () => stream?.closed)
    t.equal(stream?.rstCode, 8, 'CANCEL')
    t.match(await recorded(scene), { error: 'deadline-exceeded', status: 504 })
  })
}

t.test('a timeout has an amount of eight digits at most, and a unit', t => {
  const msOf = (timeout: string, type = 'application/grpc') => {
    const raw = ['content-type', type, 'grpc-timeout', timeout]
    return grpcTimeoutMs({ version: '2.0', fields: new Fields(raw, ['content-type', 'grpc-timeout']) })
  }
  t.same(
    ['1H', '2M', '3S', '4m', '5000u', '6000000n'].map(text => msOf(text)),
    [3_600_000, 120_000, 3000, 4, 5, 6],
  )
  t.same(
    ['', '1', 'S', '123456789S', '-1S', '1.5S', '1s'].map(text => msOf(text)),
    Array(7).fill(undefined),
  )
  t.same(
    ['application/grpc+proto', 'application/grpc;x', 'application/grpc-web', 'text/plain'].map(type =>
      msOf('1S', type),
    ),
    [1000, 1000, undefined, undefined],
  )
  t.end()
})
