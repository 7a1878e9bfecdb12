/** HTTP/2 clients: streams that end, streams that are reset, sessions that are cut, and slow readers. */
import { connect, constants } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { anyAddress, below, HOST } from './chance.mjs'

/** Sends a request on a stream of the session; resolves to its status, or to 0 when it was cut. */
function ask(session, path, { method = 'GET', body, leaveAfter, pauses = false } = {}) {
  return new Promise(resolve => {
    let stream
    try {
      stream = session.request({ ':method': method, ':path': path, ':authority': HOST })
    } catch {
      // The session has ended since it was chosen.
      resolve(0)
      return
    }
    const leave =
      leaveAfter === undefined
        ? undefined
        : setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), leaveAfter)
    let status = 0
    stream.on('error', () => undefined)
    stream.on('response', head => {
      status = head[':status']
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
function read(stream, pauses) {
  stream.on('data', () => {
    if (!pauses) return
    stream.pause()
    setTimeout(() => stream.resume(), below(8))
  })
}

/** Longer than the gateway lets a client wait for anything. */
const DEAF_MS = 15_000

/** A session on a connection of its own. */
function open(url) {
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
async function askAlone(url, path, options) {
  const { session } = open(url)
  const status = await ask(session, path, options)
  session.close()
  return status
}

const PATHS = ['/', '/trickle', '/big', '/silent', '/stall', '/cut']

/** Several streams at once, whose session or connection is cut. */
async function cutSession({ url }) {
  const { session, tcp } = open(url)
  const asked = Array.from({ length: 1 + below(8) }, () => ask(session, PATHS[below(PATHS.length)]))
  await sleep(below(150))
  if (below(2) === 0) session.destroy()
  else if (!tcp.destroyed) tcp.resetAndDestroy()
  await Promise.all(asked)
}

/** More pings than the gateway allows a client: it ends the session. */
async function pingTooMuch({ url }) {
  const { session } = open(url)
  const ended = new Promise(resolve => session.on('close', resolve))
  await new Promise(resolve => session.on('connect', resolve).on('close', resolve))
  for (let i = 0; i < 250 && !session.destroyed; i += 1) {
    session.ping(() => undefined)
    if (i % 50 === 0) await sleep(10)
  }
  await Promise.race([ended, sleep(5_000)])
  session.destroy()
  await sleep(200)
}

/** As in http1.mjs. */
const CLIENTS = {
  'HTTP/2: honest': { many: 4, isHonest: true, do: to => ask(to.session(), below(2) ? '/' : '/?x') },
  'HTTP/2: slots taken': {
    many: 3,
    do: to => ask(to.uploads(), '/work', { method: 'POST', body: 'x'.repeat(below(5000)) }),
  },
  'HTTP/2: upstream cuts': { many: 2, do: to => ask(to.session(), ['/cut', '/gone', '/stall'][below(3)]) },
  'HTTP/2: streams reset': {
    many: 3,
    do: to => ask(to.resetting(), ['/trickle', '/silent', '/big'][below(3)], { leaveAfter: below(300) }),
  },
  'HTTP/2: uploads left behind': {
    many: 2,
    do: to =>
      ask(to.resetting(), '/work', {
        method: 'POST',
        body: 'x'.repeat(below(200_000)),
        leaveAfter: below(40),
      }),
  },
  'HTTP/2: slow readers': { many: 2, do: ({ url }) => askAlone(url, '/big', { pauses: true }) },
  'HTTP/2: sessions cut': { many: 2, do: cutSession },
  'HTTP/2: too many pings': { many: 1, do: pingTooMuch },
}

/** @returns the clients of the gateway at `url`, and `close` for what they keep open */
export function http2Clients(url) {
  // A refused upload is reset, and nghttp2 ends a session with more than 33 resets a second.
  const [whole, uploads, resetting] = [keptSession(url), keptSession(url), keptSession(url)]
  const to = { url, session: whole.get, uploads: uploads.get, resetting: resetting.get }
  const clients = Object.entries(CLIENTS).map(([name, client]) => ({
    ...client,
    name,
    do: () => client.do(to),
  }))
  return {
    clients,
    close() {
      whole.close()
      uploads.close()
      resetting.close()
    },
  }
}

/** A session that many share, replaced once it has ended: the gateway ends one whose streams are reset too often. */
function keptSession(url) {
  let session
  return {
    get() {
      if (session === undefined || session.closed || session.destroyed) session = open(url).session
      return session
    },
    close: () => session?.destroy(),
  }
}
