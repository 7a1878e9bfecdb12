/** A gateway with each HTTP/2 wire, an upstream that records what reaches it, a usual client and hostile ones. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Http2Wire } from '../../../../config/words/words.js'
import type { TestCertificate } from '../../../helpers/certificates.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../../helpers/gateway.js'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { FrameClient, type FrameClientOptions } from '../../listen/frames.js'
import { ask, openSession } from '../../listen/http2-scene.js'

/** A request as the upstream saw it. */
export interface Seen {
  readonly method: string
  readonly target: string
  /** Names and values in turn. */
  readonly fields: readonly string[]
  body: string
  trailers: readonly string[]
  /** Undefined while it is in progress; false if it was cut. */
  isWhole: boolean | undefined
}

export interface Target {
  readonly wire: Http2Wire
  readonly gateway: TestGateway
  readonly port: number
  /** Every request that reached the upstream, except those of the usual client. */
  readonly seen: readonly Seen[]
  /** Opens a connection of a client that has none yet. */
  hostile(t: Test, options?: FrameClientOptions): Promise<FrameClient>
  /** A request of the usual client: how long its response took, in milliseconds. */
  serve(): Promise<number>
}

/** The largest response: a path of `/bytes/<n>` is answered with that many. */
const BIG = Buffer.alloc(4 * 1024 * 1024, 'b')
const USUAL = '/usual'
/** No request of the usual client may take longer, however busy the machine. */
const PROMPT_MS = 2_000

export async function target(
  t: Test,
  certificate: TestCertificate,
  wire: Http2Wire,
  options: Partial<TestGatewayOptions> = {},
): Promise<Target> {
  const seen: Seen[] = []
  const gateway = await testGateway(t, {
    upstream: await startUpstream(t, req => {
      if (req.url !== USUAL) record(seen, req)
    }),
    tls: certificate,
    http2: wire,
    ...options,
  })
  const port = Number(new URL(gateway.url).port)
  const usual = await openSession(t, gateway.url, certificate)
  let clients = 1
  return {
    wire,
    gateway,
    port,
    seen,
    hostile: (t, options) => FrameClient.open(t, port, { localAddress: `127.0.0.${++clients}`, ...options }),
    serve: () => serve(usual),
  }
}

/** Starts the upstream, which answers by path; returns its address. */
export async function startUpstream(t: Test, onRequest: (req: IncomingMessage) => void): Promise<string> {
  const upstream = createServer((req, res) => {
    onRequest(req)
    respond(req, res)
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  return `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
}

async function serve(session: ClientHttp2Session): Promise<number> {
  const begun = performance.now()
  const { status } = await ask(session, { ':path': USUAL })
  if (status !== 200) throw new Error(`the usual client got ${status}`)
  const took = performance.now() - begun
  if (took > PROMPT_MS) throw new Error(`the usual client waited ${took} ms`)
  return took
}

function record(seen: Seen[], req: IncomingMessage): void {
  const { method = '', url = '' } = req
  const one: Seen = {
    method,
    target: url,
    fields: req.rawHeaders,
    body: '',
    trailers: [],
    isWhole: undefined,
  }
  seen.push(one)
  if (url !== '/stuck') {
    req.on('data', (bytes: Buffer) => {
      one.body += bytes.toString('latin1')
    })
  }
  req.on('error', () => {})
  req.on('close', () => {
    one.isWhole = req.complete
    one.trailers = req.rawTrailers
  })
}

/** `/never` gets no response, the body of `/stuck` is not even read, `/bytes/<n>` one of n bytes, `/early` one before the body; all others a short one. */
function respond(req: IncomingMessage, res: ServerResponse): void {
  const { url = '' } = req
  res.on('error', () => {})
  if (url === '/never' || url === '/stuck') return
  if (url === '/early') return void res.end('early')
  const bytes = Number(/^\/bytes\/(\d+)$/.exec(url)?.[1] ?? 2)
  req.resume().on('end', () => res.end(BIG.subarray(0, bytes)))
}

export interface Attack {
  /** Sent before the flood. */
  readonly begin?: Buffer
  /** The i-th part of the flood. */
  part(i: number): Buffer
  /** How many parts are sent if nothing ends the connection. */
  readonly most: number
  /** Parts that are sent together. */
  readonly together?: number
}

export interface Fate {
  /** The error code of GOAWAY; undefined if there was none. */
  readonly code: number | undefined
  /** Whether the gateway ended the connection. */
  readonly hasEnded: boolean
  /** Parts sent before it did. */
  readonly sent: number
}

/** Plays an attack to its end. Meanwhile the usual client is served. */
export async function play(place: Target, client: FrameClient, attack: Attack): Promise<Fate> {
  const { begin, part, most, together = 50 } = attack
  if (begin !== undefined) client.send(begin)
  let sent = 0
  while (sent < most && !client.closed && client.goaway === undefined) {
    const parts = Array.from({ length: Math.min(together, most - sent) }, (_, i) => part(sent + i))
    client.send(...parts)
    sent += parts.length
    await sleep(1)
    if (sent % (20 * together) === 0) await place.serve()
  }
  // Node looks at its sessions once a second.
  const hasEnded = await endOf(client, 4_000)
  if (hasEnded && place.wire === 'own')
    await waitUntil('the end of the connection', () => client.closed, 3_000)
  await place.serve()
  return { code: client.goaway, hasEnded, sent }
}

/** Whether the gateway ends the connection, of which there is a sign within a short time. */
export async function endOf(client: FrameClient, ms = 1_500): Promise<boolean> {
  const hasEnd = () => client.closed || client.goaway !== undefined
  const deadline = performance.now() + ms
  while (!hasEnd() && performance.now() < deadline) await sleep(5)
  return hasEnd()
}
