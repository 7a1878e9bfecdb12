/** Clients that hold many places of an upstream, through the whole gateway: other clients are served all the same. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import t, { type Test } from 'tap'
import { HTTP2_WIRES } from '../../../config/words/words.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'
import { GET, OK, RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { clientOf, scene as joined } from './gateway.js'

const LARGE = Buffer.alloc(24 * 1024 * 1024)
const PLACES = 16
const PROJECT = 'acme.localhost'

/** One request in progress, whichever the protocol. */
interface Open {
  /** Sends bytes of its body. */
  send(bytes: string): void
  /** The status of the response; 0 before it comes. */
  status(): number
  ended(): boolean
}
type Opener = (method: string, path: string, bytes?: string) => Open

interface Scene {
  readonly gateway: TestGateway
  /** Opens requests from an address of this machine. */
  from(address: string): Promise<Opener>
  /** Requests that the upstream has in progress. */
  readonly busy: () => number
}

/** HTTP/1.1, or one of the implementations of HTTP/2. */
const PROTOCOLS = ['HTTP/1.1', ...HTTP2_WIRES] as const
type Protocol = (typeof PROTOCOLS)[number]

async function scene(t: Test, protocol: Protocol, timeouts: string, settings?: string): Promise<Scene> {
  let busy = 0
  const upstream = await startApp(t, (req, res) => {
    busy += 1
    res.once('close', () => {
      busy -= 1
    })
    if (req.url === '/large') res.end(LARGE)
    else if (req.url === '/events') res.write('data: 1\n\n')
    else req.resume().on('end', () => res.end('ok'))
  })
  const certificate = protocol === 'HTTP/1.1' ? undefined : makeCertificate(t.testdir(), 'localhost')
  const gateway = await testGateway(t, {
    upstream,
    timeouts,
    upstreamSettings: `connections: ${PLACES}`,
    ...(protocol !== 'HTTP/1.1' && { tls: certificate, http2: protocol }),
    ...(settings && { settings }),
  })
  const from = async (address: string): Promise<Opener> =>
    certificate === undefined
      ? http1(t, Number(new URL(gateway.url).port), address)
      : http2(await session(t, gateway.url, address, certificate.cert))
  return { gateway, from, busy: () => busy }
}

const http1 =
  (t: Test, port: number, localAddress: string, fields = ''): Opener =>
  (method, path, bytes) => {
    const socket = connectTcp({ port, host: '127.0.0.1', localAddress, noDelay: true })
    t.teardown(() => socket.destroy())
    const client = new RawPeer(socket)
    const body = bytes === undefined ? '' : `Content-Length: 4000\r\n\r\n${bytes}`
    client.send(`${method} ${path} HTTP/1.1\r\nHost: ${PROJECT}\r\n${fields}${body || '\r\n'}`)
    if (path === '/large') socket.pause()
    return {
      send: more => void client.send(more),
      status: () => Number(/^HTTP\/1\.1 (\d+)/.exec(client.unread)?.[1] ?? 0),
      ended: () => client.ended || client.closed,
    }
  }

const http2 =
  (session: ClientHttp2Session): Opener =>
  (method, path, bytes) => {
    const body = bytes === undefined ? {} : { 'content-length': 4000 }
    const head = { ':method': method, ':path': path, ':authority': PROJECT, ...body }
    const stream = session.request(head, { endStream: bytes === undefined })
    let status = 0
    let ended = false
    stream.on('response', fields => {
      status = Number(fields[':status'])
    })
    stream
      .on('error', () => {})
      .on('close', () => {
        ended = true
      })
    if (path !== '/large') stream.resume()
    if (bytes !== undefined) stream.write(bytes)
    return { send: more => void stream.write(more), status: () => status, ended: () => ended }
  }

async function session(t: Test, url: string, localAddress: string, ca: string): Promise<ClientHttp2Session> {
  const options = { ca, localAddress, servername: 'localhost', settings: { initialWindowSize: 1000 } }
  const one = connectHttp2(url, options as object)
  one.on('error', () => {})
  t.teardown(() => one.destroy())
  await once(one, 'remoteSettings')
  return one
}

const many = (count: number, make: () => Open): Open[] => Array.from({ length: count }, make)

/** The status that a newcomer gets, from an address and of its own. */
async function newcomer({ from }: Scene): Promise<number> {
  const open = await from('127.0.0.99')
  const one = open('GET', '/small')
  await waitUntil('a response', () => one.status() > 0, 4_000)
  return one.status()
}

const PATIENT = '{ connect: 2s, head: 20s, idle: 20s }'

if (canMakeCertificates(t)) {
  for (const protocol of PROTOCOLS) {
    for (const [what, method, path, bytes] of [
      ['uploads that it does not finish', 'POST', '/', 'x'],
      ['responses that it does not read', 'GET', '/large', undefined],
      ['streams on which the upstream is silent', 'GET', '/events', undefined],
    ] as const) {
      t.test(
        `${protocol === 'HTTP/1.1' ? protocol : `HTTP/2, ${protocol}`}: one client leaves room for others with ${what}`,
        async t => {
          const one = await scene(t, protocol, PATIENT)
          const open = await one.from('127.0.0.1')
          const held = many(PLACES + 4, () => open(method, path, bytes))
          await waitUntil('its places to be taken', () => one.busy() === 12)
          t.equal(await newcomer(one), 200)
          t.equal(one.busy(), 12, 'it keeps three quarters')
          t.ok(held.every(request => !request.ended()))
        },
      )

      if (path === '/events') continue
      t.test(
        `${protocol === 'HTTP/1.1' ? protocol : `HTTP/2, ${protocol}`}: clients that together hold every place give way, with ${what}`,
        async t => {
          const one = await scene(t, protocol, PATIENT)
          for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
            const open = await one.from(address)
            many(PLACES / 2, () => open(method, path, bytes))
          }
          await waitUntil('all places to be taken', () => one.busy() === PLACES)
          // Who is not waited for yet does not give way.
          await sleep(300)
          for (let i = 0; i < 3; i++) t.equal(await newcomer(one), 200)
        },
      )
    }

    t.test(
      `${protocol === 'HTTP/1.1' ? protocol : `HTTP/2, ${protocol}`}: an upload ends when it comes byte by byte, but a slow line is served`,
      async t => {
        const one = await scene(t, protocol, '{ connect: 2s, head: 20s, idle: 1s }')
        const open = await one.from('127.0.0.1')
        const [drip, slow] = [open('POST', '/', 'x'), open('POST', '/', 'x'.repeat(100))]
        let sent = 100
        for (let i = 0; sent < 4000; i += 1) {
          await sleep(100)
          if (!drip.ended()) drip.send('x')
          const next = Math.min(100, 4000 - sent)
          slow.send('x'.repeat(next))
          sent += next
          if (i === 20) t.equal(drip.status(), 408, 'within two seconds')
        }
        await waitUntil('the response', () => slow.status() > 0)
        t.equal(slow.status(), 200)
      },
    )
  }
}

t.test('behind a trusted proxy, those that it names are the clients, IPv6 by the /64', async t => {
  const one = await scene(t, 'HTTP/1.1', PATIENT, 'trustedProxies: [127.0.0.0/8]')
  const port = Number(new URL(one.gateway.url).port)
  const from = (client: string) => http1(t, port, '127.0.0.1', `X-Forwarded-For: ${client}\r\n`)
  const open = (i: number) => from(`2001:db8::${i}`)('POST', '/', 'x')
  const held = Array.from({ length: PLACES + 4 }, (_, i) => open(i))
  await waitUntil('its places to be taken', () => one.busy() === 12)
  await sleep(200)
  t.equal(one.busy(), 12, 'all addresses of its /64 together')
  const other = from('2001:db8:0:1::1')('GET', '/small')
  await waitUntil('a response', () => other.status() > 0)
  t.equal(other.status(), 200)
  t.ok(held.every(request => !request.ended()))
})

t.test('open WebSockets take no place', async t => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const key = 'Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n'
  const upstreamSays = async (peer: RawPeer): Promise<void> => {
    const { line } = await peer.message()
    peer.send(line.includes('/chat') ? `HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n` : OK)
  }
  const { gateway } = await joined(t, upstreamSays, { connections: 1 })
  for (let i = 0; i < 3; i++) {
    const client = await clientOf(t, gateway)
    client.send(`GET /chat HTTP/1.1\r\nHost: a\r\n${upgrade}${key}\r\n`)
    t.match((await client.message({ bodyless: true })).line, / 101 /)
  }
  const other = await clientOf(t, gateway)
  other.send(GET)
  t.equal((await other.message()).body, 'ok')
})
