/** Both services behind a gateway, and clients that begin a request without finishing it. */
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import type { Test } from 'tap'
import { makeCertificate } from '../../helpers/certificates.js'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { rawClient } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'

export const API_KEYS = 'a-management-key-0123'
export const IDENTITY_ADMIN_KEYS = 'an-identity-key-0123'
export const MIB = 1024 * 1024

export type Protocol = 'HTTP/1.1' | 'HTTP/2'

export interface Begun {
  send(bytes: Buffer): void
  /** Waits for the head of the response. */
  answer(): Promise<{ status: number; header(name: string): string }>
  /** 0 before the response. */
  status(): number
  leave(): void
}

/** Begins a request with these fields; `length` is that of the body, which is not sent. */
export type Begin = (
  method: string,
  path: string,
  fields: Readonly<Record<string, string>>,
  length: number,
) => Promise<Begun>

export interface Scene {
  readonly gateway: GatewayProcess
  readonly begin: Begin
}

/** `more` is added to gateway.yaml. */
export async function startScene(t: Test, protocol: Protocol, more = ''): Promise<Scene> {
  const certificate = protocol === 'HTTP/2' ? makeCertificate(t.testdir(), 'localhost') : undefined
  const tls = certificate ? `, tls: { cert: ${certificate.certFile}, key: ${certificate.keyFile} }` : ''
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0${tls} }
admin: { host: 127.0.0.1, port: 0 }
trustedProxies: [127.0.0.1/32]
upstreams: { directory: { embedded: directory }, identity: { embedded: identity } }
routes: [{ path: /api/**, upstream: directory }, { path: /**, upstream: identity }]
${more}`,
    {},
  )
  const gateway = await gatewayProcess(t, folder, { API_KEYS, IDENTITY_ADMIN_KEYS })
  return { gateway, begin: certificate ? http2(t, gateway.url, certificate.cert) : http1(t, gateway.url) }
}

const http1 =
  (t: Test, url: string): Begin =>
  async (method, path, fields, length) => {
    const client = await rawClient(Number(new URL(url).port))
    t.teardown(() => client.socket.destroy())
    const lines = Object.entries({ host: 'acme.localhost', ...fields, 'content-length': String(length) })
    client.send(
      `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    )
    const status = () => Number(/^HTTP\/1\.1 (\d+)/.exec(client.unread)?.[1] ?? 0)
    return {
      send: bytes => void client.socket.write(bytes),
      status,
      async answer() {
        await waitUntil('a response', () => status() !== 0)
        const answered = status()
        const { fields } = await client.head()
        const header = (name: string) => fields.find(([field]) => field.toLowerCase() === name)?.[1] ?? ''
        return { status: answered, header }
      },
      leave: () => client.socket.destroy(),
    }
  }

const http2 = (t: Test, url: string, ca: string): Begin => {
  return async (method, path, fields, length) => {
    // One each: a session of Node's client sends nothing while more than 10 MB wait.
    const session = connectHttp2(url, { ca })
    session.on('error', () => undefined)
    t.teardown(() => session.destroy())
    const head = { ':method': method, ':path': path, ':authority': 'acme.localhost', ...fields }
    const stream: ClientHttp2Stream = session.request(
      { ...head, 'content-length': String(length) },
      { endStream: false },
    )
    stream.on('error', () => undefined).resume()
    let given: Record<string, unknown> | undefined
    stream.on('response', answered => {
      given = answered
    })
    const status = () => Number(given?.[':status'] ?? 0)
    return {
      send: bytes => void stream.write(bytes),
      status,
      async answer() {
        await waitUntil('a response', () => status() !== 0)
        return { status: status(), header: name => String(given?.[name] ?? '') }
      },
      leave: () => stream.close(8),
    }
  }
}
