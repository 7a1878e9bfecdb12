/** gRPC with a client and a server that are not ours, and a whole gateway between them. */
import {
  Client,
  type ClientOptions,
  credentials,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import type { Test } from 'tap'
import { makeCertificate } from '../../../helpers/certificates.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../../helpers/gateway.js'

/** Messages are plain bytes: what is in them is no concern of a gateway. */
export const same = (message: Buffer): Buffer => message
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
export const ECHO = {
  unary: method('unary', false, false),
  collect: method('collect', true, false),
  count: method('count', false, true),
  talk: method('talk', true, true),
}
export const MEGABYTE = Buffer.alloc(1024 * 1024, 7)

export interface GrpcScene {
  readonly gateway: TestGateway
  readonly client: Client
  /** Calls that have reached the server. */
  readonly calls: string[]
  /** Calls that their clients have cancelled. */
  readonly cancelled: string[]
}

/** The client speaks HTTP/2 within TLS, or in the clear if `isClear`. */
export async function grpcScene(
  t: Test,
  { isClear = false, ...options }: Partial<TestGatewayOptions> & { readonly isClear?: boolean } = {},
): Promise<GrpcScene> {
  const cancelled: string[] = []
  const calls: string[] = []
  const server = new Server()
  server.addService(ECHO, {
    unary(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      calls.push('unary')
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
  const tls = isClear ? undefined : makeCertificate(t.testdir(), 'localhost')
  const gateway = await testGateway(t, {
    upstream: `http://127.0.0.1:${port}`,
    upstreamSettings: 'protocol: h2c',
    http2: 'own',
    ...options,
    ...(tls && { tls }),
  })
  const secured = tls && credentials.createSsl(Buffer.from(tls.cert))
  const settings: ClientOptions = {
    'grpc.default_authority': 'acme.localhost',
    ...(tls && { 'grpc.ssl_target_name_override': 'localhost' }),
  }
  const at = `localhost:${new URL(gateway.url).port}`
  const client = new Client(at, secured ?? credentials.createInsecure(), settings)
  t.teardown(() => client.close())
  return { gateway, client, calls, cancelled }
}

export function unary(client: Client, message: Buffer): Promise<{ answer: Buffer; trailers: Metadata }> {
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
