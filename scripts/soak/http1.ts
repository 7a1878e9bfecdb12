/** HTTP/1.1 clients and WebSockets, in plain text or over TLS. Each does one thing once and releases what it took. */
import * as http from 'node:http'
import * as https from 'node:https'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import { type AskOptions, anyAddress, below, type Client, type Clients, HOST, oneOf } from './clients.js'

interface Gateway {
  readonly url: string
  readonly request: typeof http.request
  readonly agent: http.Agent
}

/** Sends a request; resolves to its status, or to 0 when it was cut. */
function ask({ url, request, agent }: Gateway, path: string, options: AskOptions = {}): Promise<number> {
  const { method = 'GET', body, leaveAfter, pauses = false } = options
  return new Promise(resolve => {
    const tls = { rejectUnauthorized: false }
    const sent = request(url + path, {
      ...{ method, agent, headers: { host: HOST }, localAddress: anyAddress(), ...tls },
    })
    const leave = leaveAfter === undefined ? undefined : setTimeout(() => sent.destroy(), leaveAfter)
    const end = (status = 0) => {
      clearTimeout(leave)
      resolve(status)
    }
    let isAnswered = false
    sent.on('error', () => end())
    sent.on('close', () => isAnswered || end())
    sent.on('response', async answer => {
      isAnswered = true
      try {
        for await (const _ of answer) if (pauses) await sleep(below(8))
        end(answer.statusCode)
      } catch {
        end()
      }
    })
    sent.end(body)
  })
}

/**
 * Sends raw bytes, over TLS or as plain text (even to a TLS port); waits a little, then closes with a FIN or a reset.
 */
async function sendRaw({ url }: Gateway, bytes: string, ms: number): Promise<undefined> {
  const { protocol, hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, localAddress: anyAddress() })
  socket.on('error', () => undefined)
  const isWrapped = protocol === 'https:' && below(4) > 0
  const writer = isWrapped ? connectTls({ socket, rejectUnauthorized: false }) : socket
  writer.on('error', () => undefined).resume()
  writer.write(bytes, 'latin1')
  await sleep(ms)
  if (below(2) === 0) socket.destroy()
  else if (!socket.destroyed) socket.resetAndDestroy()
}

const HEAD = `Host: ${HOST}\r\n`
const RAW = [
  `GET /trickle HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /big HTTP/1.1\r\n${HEAD}\r\n`,
  `POST /work HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\npart`,
  `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`,
  `POST / HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HEAD}\r\n`.repeat(20),
  `GET /silent HTTP/1.1\r\n${HEAD}\r\nGET / HTTP/1.1\r\n${HEAD}\r\n`,
  `GET / HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  'GET / HT',
  'no http at all\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00',
]

function webSocket({ url }: Gateway): Promise<undefined> {
  return new Promise(resolve => {
    const options = { headers: { host: HOST }, rejectUnauthorized: false, localAddress: anyAddress() }
    const socket = new WebSocket(url.replace('http', 'ws'), options)
    const way = below(4)
    socket.on('error', () => undefined).on('close', () => resolve(undefined))
    socket.on('open', () => socket.send(way === 0 ? 'cut' : 'hello'))
    socket.on('message', () => {
      if (way === 1) socket.terminate()
      else socket.close()
    })
  })
}

/** The clients of the gateway at `url`. */
export function http1Clients(url: string): Clients {
  const spoken = url.startsWith('https:') ? https : http
  const to: Gateway = { url, request: spoken.request, agent: new spoken.Agent({ keepAlive: true }) }
  const slot = (body: string, leaveAfter?: number) =>
    ask(to, '/work', { method: 'POST', body, ...(leaveAfter === undefined ? {} : { leaveAfter }) })
  const clients: Client[] = [
    { name: 'honest', many: 6, isHonest: true, act: () => ask(to, oneOf(['/', '/?x'])) },
    { name: 'slots taken', many: 6, act: () => slot('x'.repeat(below(5000))) },
    { name: 'slots left behind', many: 3, act: () => slot('x', below(90)) },
    {
      name: 'aborted before or within the answer',
      many: 3,
      act: () => ask(to, '/trickle', { leaveAfter: below(400) }),
    },
    { name: 'slow readers', many: 3, act: () => ask(to, '/big', { pauses: true }) },
    {
      name: 'readers that leave',
      many: 2,
      act: () => ask(to, '/big', { pauses: true, leaveAfter: below(2000) }),
    },
    { name: 'upstream cuts', many: 2, act: () => ask(to, oneOf(['/cut', '/gone'])) },
    { name: 'upstream silent or stalled', many: 2, act: () => ask(to, oneOf(['/silent', '/stall'])) },
    { name: 'a flood refused', many: 1, act: () => ask(to, '/flood', { method: 'POST', body: '' }) },
    { name: 'raw bytes and resets', many: 4, act: () => sendRaw(to, oneOf(RAW), below(60)) },
    { name: 'WebSockets', many: 3, act: () => webSocket(to) },
  ]
  return { clients, close: () => to.agent.destroy() }
}
