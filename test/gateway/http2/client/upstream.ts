/** A real HTTP/2 server, by Node, and a whole gateway before it. */
import { once } from 'node:events'
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { makeCertificate, type TestCertificate } from '../../../helpers/certificates.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../../helpers/gateway.js'

export type Answering = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number) => unknown

export interface Http2Upstream {
  readonly server: Http2Server
  readonly url: string
  readonly port: number
  /** All connections so far. */
  readonly sessions: ServerHttp2Session[]
  /** All requests so far. */
  readonly streams: ServerHttp2Stream[]
  stop(): Promise<void>
}

export interface UpstreamOptions extends ServerOptions {
  /** Within TLS, with this certificate. */
  readonly certificate?: TestCertificate
  readonly port?: number
}

/** Starts a server; it is stopped with the test. */
export async function http2Upstream(
  t: Test,
  answer: Answering,
  { certificate, port = 0, ...options }: UpstreamOptions = {},
): Promise<Http2Upstream> {
  const server =
    certificate === undefined
      ? createServer(options)
      : createSecureServer({ ...options, cert: certificate.cert, key: certificate.key })
  const sessions: ServerHttp2Session[] = []
  const streams: ServerHttp2Stream[] = []
  server.on('session', session => {
    sessions.push(session)
    session.on('error', () => {})
  })
  server.on('stream', (stream, headers, flags) => {
    streams.push(stream)
    stream.on('error', () => {})
    answer(stream, headers, flags)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const session of sessions) session.destroy()
    await closed
  }
  t.teardown(stop)
  const address = server.address() as AddressInfo
  const scheme = certificate === undefined ? 'http' : 'https'
  return { server, url: `${scheme}://127.0.0.1:${address.port}`, port: address.port, sessions, streams, stop }
}

/** An upstream and a gateway before it, in the clear. */
export async function h2cScene(
  t: Test,
  answer: Answering,
  { server = {}, ...options }: Partial<TestGatewayOptions> & { readonly server?: UpstreamOptions } = {},
): Promise<{ upstream: Http2Upstream; gateway: TestGateway }> {
  const upstream = await http2Upstream(t, answer, server)
  return { upstream, gateway: await h2cGateway(t, upstream.url, options) }
}

/** A gateway before an upstream that speaks HTTP/2 in the clear. */
export function h2cGateway(
  t: Test,
  url: string,
  options: Partial<TestGatewayOptions> = {},
): Promise<TestGateway> {
  return testGateway(t, { ...options, upstream: url, upstreamSettings: 'protocol: h2c' })
}

/** The same within TLS. */
export async function tlsScene(
  t: Test,
  answer: Answering,
): Promise<{ upstream: Http2Upstream; gateway: TestGateway }> {
  const certificate = makeCertificate(t.testdir(), 'upstream')
  const upstream = await http2Upstream(t, answer, { certificate })
  const gateway = await testGateway(t, {
    upstream: upstream.url,
    ca: certificate.certFile,
    upstreamSettings: 'protocol: h2',
  })
  return { upstream, gateway }
}
