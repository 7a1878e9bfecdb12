/** HTTP/2 clients: streams that end, streams that are reset, sessions that are cut, and slow readers. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { type AskOptions, anyAddress, below, type Client, type Clients, HOST, oneOf } from './clients.js'

/** Sends a request on a stream of the session; resolves to its status, or to 0 when it was cut. */
function ask(session: ClientHttp2Session, path: string, options: AskOptions = {}): Promise<number> {
  const { method = 'GET', body, leaveAfter, pauses = false } = options
  return new Promise(resolve => {
    let stream: ClientHttp2Stream
    try {
      stream = session.request({ ':method': method, ':path': path, ':authority': HOST })
    } catch {
      // The session has ended since it was chosen.
      resolve(0)
      return
    }
    const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
    const leave = leaveAfter === undefined ? undefined : setTimeout(cancel, leaveAfter)
    let status = 0
    stream.on('error', () => undefined)
    stream.on('response', head => {
      status = head[':status'] ?? 0
    })
    stream.on('close', () => {
      clearTimeout(leave)
      resolve(stream.rstCode === constants.NGHTTP2_NO_ERROR ? status : 0)
    })
    read(stream, pauses)
    // Node leaves a stream open that was answered, and reset without an error, before its body was sent.
    if (body !== undefined) stream.on('end', () => stream.destroy())
    stream.end(body)
  })
}

/** Not by `for await`, which destroys the stream after its response: a reset each, and the 1,036th ends the session. */
function read(stream: ClientHttp2Stream, pauses: boolean): void {
  stream.on('data', () => {
    if (!pauses) return
    stream.pause()
    setTimeout(() => stream.resume(), below(8))
  })
}

/** Longer than the gateway lets a client wait for anything. */
const DEAF_MS = 15_000

/** A session on a connection of its own. */
function open(url: string): { session: ClientHttp2Session; tcp: Socket } {
  const { hostname, port } = new URL(url)
  const tcp = connectTcp({ port: Number(port), host: hostname, localAddress: anyAddress() })
  tcp.on('error', () => undefined)
  const tls = connectTls({ socket: tcp, ALPNProtocols: ['h2'], rejectUnauthorized: false })
  tls.on('error', () => undefined)
  const session = connect(url, { createConnection: () => tls })
  session.on('error', () => undefined)
  // Node may not notice a reset of its own TLS sockets (docs/proxy-conformance.md), and would wait forever.
  const watch = setInterval(() => {
    if (session.destroyed) return clearInterval(watch)
    const late = setTimeout(() => tls.destroy(), DEAF_MS)
    if (!session.ping(() => clearTimeout(late))) clearTimeout(late)
  }, 5_000)
  session.on('close', () => clearInterval(watch))
  return { session, tcp }
}

/** One request on a session of its own, which is then closed gracefully. */
async function askAlone(url: string, path: string, options: AskOptions): Promise<number> {
  const { session } = open(url)
  const status = await ask(session, path, options)
  session.close()
  return status
}

const PATHS = ['/', '/trickle', '/big', '/silent', '/stall', '/cut']

/** Several streams at once, whose session or connection is cut. */
async function cutSession(url: string): Promise<undefined> {
  const { session, tcp } = open(url)
  const asked = Array.from({ length: 1 + below(8) }, () => ask(session, oneOf(PATHS)))
  await sleep(below(150))
  if (below(2) === 0) session.destroy()
  else if (!tcp.destroyed) tcp.resetAndDestroy()
  await Promise.all(asked)
}

/** More pings than the gateway allows a client: it ends the session. */
async function pingTooMuch(url: string): Promise<undefined> {
  const { session } = open(url)
  const ended = new Promise(resolve => session.on('close', resolve))
  await new Promise<unknown>(resolve => session.on('connect', resolve).on('close', resolve))
  for (let i = 0; i < 250 && !session.destroyed; i += 1) {
    session.ping(() => undefined)
    if (i % 50 === 0) await sleep(10)
  }
  await Promise.race([ended, sleep(5_000)])
  session.destroy()
  await sleep(200)
}

/** The clients of the gateway at `url`. */
export function http2Clients(url: string): Clients {
  // A refused upload is reset, and nghttp2 ends a session with more than 33 resets a second.
  const [whole, uploads, resetting] = [sharedSession(url), sharedSession(url), sharedSession(url)]
  const clients: Client[] = [
    { name: 'HTTP/2: honest', many: 4, isHonest: true, act: () => ask(whole.get(), oneOf(['/', '/?x'])) },
    {
      name: 'HTTP/2: slots taken',
      many: 3,
      act: () => ask(uploads.get(), '/work', { method: 'POST', body: 'x'.repeat(below(5000)) }),
    },
    {
      name: 'HTTP/2: upstream cuts',
      many: 2,
      act: () => ask(whole.get(), oneOf(['/cut', '/gone', '/stall'])),
    },
    {
      name: 'HTTP/2: streams reset',
      many: 3,
      act: () => ask(resetting.get(), oneOf(['/trickle', '/silent', '/big']), { leaveAfter: below(300) }),
    },
    {
      name: 'HTTP/2: uploads left behind',
      many: 2,
      act() {
        const body = 'x'.repeat(below(200_000))
        return ask(resetting.get(), '/work', { method: 'POST', body, leaveAfter: below(40) })
      },
    },
    { name: 'HTTP/2: slow readers', many: 2, act: () => askAlone(url, '/big', { pauses: true }) },
    { name: 'HTTP/2: sessions cut', many: 2, act: () => cutSession(url) },
    { name: 'HTTP/2: too many pings', many: 1, act: () => pingTooMuch(url) },
  ]
  return {
    clients,
    close() {
      for (const session of [whole, uploads, resetting]) session.close()
    },
  }
}

/** A session that many share, replaced once it has ended: the gateway ends one whose streams are reset too often. */
function sharedSession(url: string) {
  let session: ClientHttp2Session | undefined
  return {
    get() {
      if (session === undefined || session.closed || session.destroyed) session = open(url).session
      return session
    },
    close: () => session?.destroy(),
  }
}
