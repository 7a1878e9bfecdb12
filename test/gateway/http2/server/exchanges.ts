/**
 * The same exchange through HTTP/1.1 and both HTTP/2 wires of a gateway, and to an upstream by HTTP/1.1 and by HTTP/2, as
 * its client and its upstream see it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type ClientHttp2Session,
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type IncomingHttpHeaders,
} from 'node:http2'
import { Agent, request } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import type { Test } from 'tap'
import { HTTP2_WIRES } from '../../../../config/words/words.js'
import type { TestCertificate } from '../../../helpers/certificates.js'
import { testGateway } from '../../../helpers/gateway.js'
import { openSession } from '../../listen/http2-scene.js'

export interface Body {
  readonly pieces: readonly Buffer[]
  /** Whether a content-length says how long it is. */
  readonly hasLength: boolean
  readonly trailers: Readonly<Record<string, string>>
}

export interface Exchange {
  readonly method: string
  readonly target: string
  readonly fields: Readonly<Record<string, string | string[]>>
  /** None: the request ends with its head. */
  readonly body: Body | undefined
  readonly answer: {
    readonly status: number
    readonly fields: Readonly<Record<string, string>>
    readonly body: Body
    /** A 103 comes first. */
    readonly hints: boolean
  }
}

/** What one side has received. */
interface Received {
  line: string
  fields: string[]
  body: string
  trailers: string[]
}

export interface Seen {
  readonly upstream: Received | undefined
  readonly client: Received & { interim: number[] }
}

const EXCHANGE_MS = 8_000
/** Says who carried a message or when, or belongs to the version of HTTP. */
const OF_THE_WAY =
  /^(?:via|date|connection|keep-alive|transfer-encoding|trailer|te|forwarded|x-forwarded-.*|x-sluice-.*|x-request-id|server|host)$/

export interface Way {
  readonly name: string
  exchange(one: Exchange): Promise<Seen>
}

/** Opens every way through a gateway of its own; all have an upstream that does the same. */
export async function ways(t: Test, certificate: TestCertificate): Promise<Way[]> {
  let current: Exchange | undefined
  /** At most one. */
  const received: Received[] = []
  const handle = (req: IncomingMessage | Http2ServerRequest, res: ServerResponse): void => {
    readAll(req).then(
      ({ body, trailers }) => {
        received.push({
          line: `${req.method} ${req.url}`,
          fields: fieldsOf(req.rawHeaders),
          body,
          trailers: fieldsOf(trailers),
        })
        if (current !== undefined) answer(res, current)
      },
      () => {},
    )
  }
  const upstream = createServer({ keepAliveTimeout: 60_000 }, handle)
  const http2Upstream = createHttp2Server((req, res) => handle(req, res as unknown as ServerResponse))
  const url = await urlOf(t, upstream)
  t.teardown(() => upstream.closeAllConnections())
  const http2Url = await urlOf(t, http2Upstream)
  const way = (name: string, send: (one: Exchange) => Promise<Seen['client']>): Way => ({
    name,
    async exchange(one) {
      current = one
      received.length = 0
      const client = await inTime(name, send(one))
      const [seen] = received
      // HTTP/1.1 needs a length for a body that was sent without one, and knows it if it has all of it. Over HTTP/2 a
      // response without content has none.
      if (!one.answer.body.hasLength || one.answer.status === 304)
        client.fields = withoutLength(client.fields)
      if (seen !== undefined && one.body?.hasLength !== true) seen.fields = withoutLength(seen.fields)
      return { client, upstream: seen }
    },
  })
  const byHttp1 = (name: string, gateway: string): Way => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: certificate.cert, servername: 'localhost' })
    t.teardown(() => agent.destroy())
    return way(name, one => sendHttp1(gateway, agent, one))
  }
  const all: Way[] = []
  for (const http2 of HTTP2_WIRES) {
    const gateway = await testGateway(t, { upstream: url, tls: certificate, http2 })
    const session = await openSession(t, gateway.url, certificate)
    if (all.length === 0) all.push(byHttp1('HTTP/1.1', gateway.url))
    all.push(way(`HTTP/2, ${http2}`, one => sendHttp2(session, one)))
  }
  const upstreamSettings = 'protocol: h2c'
  const gateway = await testGateway(t, {
    upstream: http2Url,
    tls: certificate,
    http2: 'own',
    upstreamSettings,
  })
  const session = await openSession(t, gateway.url, certificate)
  all.push(byHttp1('HTTP/1.1, and HTTP/2 to the upstream', gateway.url))
  all.push(way('HTTP/2 both ways', one => sendHttp2(session, one)))
  return all
}

/** Listens until the test ends. */
async function urlOf(t: Test, server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Fails, rather than to wait for ever, when an exchange does not end. */
async function inTime<T>(name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name}: the exchange does not end`)), EXCHANGE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

async function readAll(
  req: IncomingMessage | Http2ServerRequest,
): Promise<{ body: string; trailers: string[] }> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  return { body: Buffer.concat(chunks).toString('latin1'), trailers: req.rawTrailers }
}

/** A field a line, sorted, names in small letters. */
function fieldsOf(raw: readonly string[]): string[] {
  const lines: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    if (!OF_THE_WAY.test(name) && !name.startsWith(':')) lines.push(`${name}: ${raw[i + 1]}`)
  }
  return lines.sort()
}

function withoutLength(lines: readonly string[]): string[] {
  return lines.filter(line => !line.startsWith('content-length:'))
}

function lengthOf({ pieces, hasLength }: Body): Record<string, string> {
  return hasLength ? { 'content-length': String(Buffer.concat(pieces).length) } : {}
}

function answer(res: ServerResponse, { method, answer: { status, fields, body, hints } }: Exchange): void {
  if (hints) res.writeEarlyHints({ link: '</a.css>; rel=preload' })
  const isEmpty = status === 204 || status === 304 || method === 'HEAD'
  const length = status === 204 ? {} : lengthOf(body)
  res.sendDate = false
  res.writeHead(status, { ...fields, ...length })
  if (isEmpty) return void res.end()
  for (const piece of body.pieces) res.write(piece)
  if (!body.hasLength) res.addTrailers(body.trailers)
  res.end()
}

function sendHttp1(url: string, agent: Agent, one: Exchange): Promise<Seen['client']> {
  const { method, target, fields, body } = one
  const { port } = new URL(url)
  return new Promise((resolve, reject) => {
    const headers = { host: 'acme.localhost', ...fields, ...(body !== undefined && framing(body)) }
    const req = request({ host: '127.0.0.1', port, agent, method, path: target, headers })
    const interim: number[] = []
    req.on('information', ({ statusCode }) => interim.push(statusCode)).on('error', reject)
    req.on('response', res => {
      readAll(res).then(({ body, trailers }) => {
        const line = String(res.statusCode)
        resolve({ line, fields: fieldsOf(res.rawHeaders), body, trailers: fieldsOf(trailers), interim })
      }, reject)
    })
    for (const piece of body?.pieces ?? []) req.write(piece)
    if (body !== undefined && !body.hasLength) req.addTrailers(body.trailers)
    req.end()
  })
}

function framing(body: Body): Record<string, string> {
  return body.hasLength ? lengthOf(body) : { 'transfer-encoding': 'chunked' }
}

function sendHttp2(session: ClientHttp2Session, one: Exchange): Promise<Seen['client']> {
  const { method, target, fields, body } = one
  return new Promise((resolve, reject) => {
    const stream = session.request(
      {
        ':method': method,
        ':path': target,
        ':authority': 'acme.localhost',
        ...fields,
        ...(body !== undefined && lengthOf(body)),
      },
      { endStream: body === undefined, waitForTrailers: body !== undefined && !body.hasLength },
    )
    const seen: Seen['client'] = { line: '', fields: [], body: '', trailers: [], interim: [] }
    stream.on('headers', headers => seen.interim.push(Number(headers[':status'])))
    stream.on('response', (headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      seen.line = String(headers[':status'])
      seen.fields = fieldsOf(raw)
    })
    stream.on('trailers', (_trailers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      seen.trailers = fieldsOf(raw)
    })
    stream.on('wantTrailers', () => stream.sendTrailers(body?.trailers ?? {}))
    stream.on('data', (bytes: Buffer) => {
      seen.body += bytes.toString('latin1')
    })
    stream.on('error', reject)
    // Not its close: Node's client may miss that its last write has ended.
    stream.on('end', () => resolve(seen))
    stream.on('close', () => reject(new Error(`reset ${stream.rstCode}`)))
    if (body !== undefined) {
      for (const piece of body.pieces) stream.write(piece)
      stream.end()
    }
  })
}
