/** gRPC through a gateway, with a client and a server that are not ours. */

import { once } from 'node:events'
import {
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { canMakeCertificates, makeCertificate } from '../../../helpers/certificates.js'
import { testGateway } from '../../../helpers/gateway.js'
import { waitUntil } from '../../../helpers/wait.js'

/** Messages are plain bytes: what is in them is no concern of a gateway. */
const same = (message: Buffer): Buffer => message
const method = (
  name: string,
  requestStream: boolean,
  responseStream: boolean,
): MethodDefinition<Buffer, Buffer> => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
})
const ECHO = {
  unary: method('unary', false, false),
  collect: method('collect', true, false),
  count: method('count', false, true),
  talk: method('talk', true, true),
}
const MEGABYTE = Buffer.alloc(1024 * 1024, 7)

interface Scene {
  readonly client: Client
  /** Calls that their clients have cancelled. */
  readonly cancelled: string[]
}

async function scene(t: Test): Promise<Scene> {
  const cancelled: string[] = []
  const server = new Server()
  server.addService(ECHO, {
    unary(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      const trailers = new Metadata()
      trailers.set('x-sum', String(call.request.length))
      if (call.request.toString() === 'fail') {
        answer({ code: status.FAILED_PRECONDITION, details: 'not today', metadata: trailers })
      } else if (call.request.toString() === 'wait') call.on('cancelled', () => cancelled.push('unary'))
      else answer(null, call.request, trailers)
    },
    collect(call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      const all: Buffer[] = []
      call.on('data', (message: Buffer) => all.push(message))
      call.on('end', () => answer(null, Buffer.concat(all)))
    },
    count(call: ServerWritableStream<Buffer, Buffer>) {
      call.on('cancelled', () => cancelled.push('count'))
      if (call.request.toString() === 'endless') {
        call.write(Buffer.from('first'))
        return
      }
      for (let i = 0; i < 100; i++) call.write(Buffer.from(String(i)))
      call.end()
    },
    talk(call: ServerDuplexStream<Buffer, Buffer>) {
      call.on('data', (message: Buffer) => call.write(message))
      call.on('end', () => call.end())
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    ),
  )
  t.teardown(() => server.forceShutdown())
  const tls = makeCertificate(t.testdir(), 'localhost')
  const gateway = await testGateway(t, {
    upstream: `http://127.0.0.1:${port}`,
    upstreamSettings: 'protocol: h2c',
    tls,
    http2: 'own',
  })
  const client = new Client(
    `localhost:${new URL(gateway.url).port}`,
    credentials.createSsl(Buffer.from(tls.cert)),
    { 'grpc.default_authority': 'acme.localhost', 'grpc.ssl_target_name_override': 'localhost' },
  )
  t.teardown(() => client.close())
  return { client, cancelled }
}

function unary(client: Client, message: Buffer): Promise<{ answer: Buffer; trailers: Metadata }> {
  const { path } = ECHO.unary
  return new Promise((resolve, reject) => {
    let answer: Buffer
    const call = client.makeUnaryRequest(path, same, same, message, (error, value) => {
      if (error !== null) reject(error)
      else answer = value as Buffer
    })
    call.on('status', ({ metadata }) => resolve({ answer, trailers: metadata }))
  })
}

if (canMakeCertificates(t)) {
  t.test('a unary call, with its trailers', async t => {
    const { client } = await scene(t)
    const { answer, trailers } = await unary(client, Buffer.from('hello'))
    t.equal(answer.toString(), 'hello')
    t.same(trailers.get('x-sum'), ['5'])
    t.equal((await unary(client, MEGABYTE)).answer.length, MEGABYTE.length)
  })

  t.test('a failed call has the status, the message and the trailers of its server', async t => {
    const { client } = await scene(t)
    const error = (await unary(client, Buffer.from('fail')).catch(error => error)) as ServiceError
    t.equal(error.code, status.FAILED_PRECONDITION)
    t.equal(error.details, 'not today')
    t.same(error.metadata.get('x-sum'), ['4'])
  })

  t.test('the messages of a client', async t => {
    const { client } = await scene(t)
    const answer = await new Promise<Buffer>((resolve, reject) => {
      const call = client.makeClientStreamRequest(ECHO.collect.path, same, same, (error, value) =>
        error === null ? resolve(value as Buffer) : reject(error),
      )
      for (let i = 0; i < 50; i++) call.write(Buffer.from(`${i},`))
      call.end()
    })
    t.equal(answer.toString(), Array.from({ length: 50 }, (_, i) => `${i},`).join(''))
  })

  t.test('the messages of a server', async t => {
    const { client } = await scene(t)
    const call = client.makeServerStreamRequest(ECHO.count.path, same, same, Buffer.alloc(0))
    const seen: string[] = []
    for await (const message of call) seen.push(String(message))
    t.same(
      seen,
      Array.from({ length: 100 }, (_, i) => String(i)),
    )
  })

  t.test('messages both ways, each as soon as it is sent', async t => {
    const { client } = await scene(t)
    const call = client.makeBidiStreamRequest(ECHO.talk.path, same, same)
    for (const text of ['a', 'b', 'c']) {
      const echo = once(call, 'data')
      call.write(Buffer.from(text))
      t.equal(String((await echo)[0]), text)
    }
    const ended = once(call, 'status')
    call.end()
    call.resume()
    t.equal((await ended)[0].code, status.OK)
  })

  t.test('a call that its client cancels is cancelled at the server', async t => {
    const { client, cancelled } = await scene(t)
    const call = client.makeServerStreamRequest(ECHO.count.path, same, same, Buffer.from('endless'))
    call.on('error', () => {})
    await once(call, 'data')
    call.cancel()
    await waitUntil('the cancellation', () => cancelled.includes('count'))
    const other = client.makeUnaryRequest(ECHO.unary.path, same, same, Buffer.from('wait'), () => {})
    setTimeout(() => other.cancel(), 100)
    await waitUntil('the cancellation', () => cancelled.includes('unary'))
    t.equal((await unary(client, Buffer.from('after'))).answer.toString(), 'after')
  })
}
