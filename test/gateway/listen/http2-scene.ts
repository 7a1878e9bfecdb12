/** A whole gateway in front of a scripted upstream, and HTTP/2 clients. */
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { Test } from 'tap'
import { HTTP2_WIRES, type Http2Wire } from '../../../config/words/words.js'
import { canMakeCertificates, makeCertificate, type TestCertificate } from '../../helpers/certificates.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { type RawPeer, type RawUpstream, rawUpstream } from '../../helpers/raw.js'

export interface OneWire {
  readonly wire: Http2Wire
  readonly certificate: TestCertificate
  /** A scene whose gateway uses this implementation. */
  scene(t: Test, script?: (peer: RawPeer) => unknown, options?: Partial<TestGatewayOptions>): Promise<Scene>
}

/** Runs tests once for each implementation of HTTP/2. */
export function onBothWires(t: Test, tests: (t: Test, one: OneWire) => void | Promise<void>): void {
  if (!canMakeCertificates(t)) return
  const certificate = makeCertificate(t.testdir(), 'localhost')
  for (const wire of HTTP2_WIRES) {
    t.test(`with http2: ${wire}`, async t => {
      await tests(t, {
        wire,
        certificate,
        scene: (t, script, options) => scene(t, certificate, script, { http2: wire, ...options }),
      })
    })
  }
}

export interface Answer {
  readonly headers: IncomingHttpHeaders
  readonly status: number | undefined
  readonly body: string
}

/** The response on a stream, read to its end; rejects when the stream was reset. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString('latin1')
  return { headers, status: Number(headers[':status']), body }
}

/** Sends a request's head; with `body`, also the body and the end of the stream. */
export function open(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string,
): ClientHttp2Stream {
  const stream = session.request(
    { ':path': '/', ':authority': 'acme.localhost', ...headers },
    { endStream: false },
  )
  stream.on('error', () => {})
  if (body !== undefined) stream.end(body)
  return stream
}

export const ask = (session: ClientHttp2Session, headers: OutgoingHttpHeaders, body = ''): Promise<Answer> =>
  answerOf(open(session, headers, body))

export interface Scene {
  readonly gateway: TestGateway
  readonly port: number
  readonly upstream: RawUpstream
  readonly session: ClientHttp2Session
}

export async function scene(
  t: Test,
  certificate: TestCertificate,
  script?: (peer: RawPeer) => unknown,
  options: Partial<TestGatewayOptions> = {},
): Promise<Scene> {
  const upstream = await rawUpstream(script)
  t.teardown(() => upstream.stop())
  const gateway = await testGateway(t, { upstream: upstream.url, tls: certificate, ...options })
  const session = await openSession(t, gateway.url, certificate)
  return { gateway, port: Number(new URL(gateway.url).port), upstream, session }
}

export async function openSession(
  t: Test,
  url: string,
  { cert }: TestCertificate,
): Promise<ClientHttp2Session> {
  const session = connect(url, { ca: cert })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'connect')
  if (session.remoteSettings.maxConcurrentStreams === undefined) await once(session, 'remoteSettings')
  return session
}
