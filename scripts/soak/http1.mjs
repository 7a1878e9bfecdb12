/** HTTP/1.1 clients and WebSockets, in plain text or over TLS. Each does one thing once and releases what it took. */
import * as http from 'node:http'
import * as https from 'node:https'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import { anyAddress, below, HOST } from './chance.mjs'

/** Sends a request; resolves to its status, or to 0 when it was cut. */
function ask({ url, http: { request }, agent }, path, options = {}) {
  const { method = 'GET', body, leaveAfter, pauses = false } = options
  return new Promise(resolve => {
    const sent = request(url + path, {
      method,
      agent,
      headers: { host: HOST },
      rejectUnauthorized: false,
      localAddress: anyAddress(),
    })
    const leave = leaveAfter === undefined ? undefined : setTimeout(() => sent.destroy(), leaveAfter)
    const end = status => {
      clearTimeout(leave)
      resolve(status)
    }
    let isAnswered = false
    sent.on('error', () => end(0))
    sent.on('close', () => isAnswered || end(0))
    sent.on('response', async answer => {
      isAnswered = true
      try {
        for await (const _ of answer) if (pauses) await sleep(below(8))
        end(answer.statusCode)
      } catch {
        end(0)
      }
    })
    sent.end(body)
  })
}

/**
 * Sends raw bytes, over TLS or as plain text (even to a TLS port); waits a little, then closes with a FIN or a reset.
 */
async function sendRaw({ url }, bytes, ms) {
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

function webSocket({ url }) {
  return new Promise(resolve => {
    const socket = new WebSocket(url.replace('http', 'ws'), {
      headers: { host: HOST },
      rejectUnauthorized: false,
      localAddress: anyAddress(),
    })
    const way = below(4)
    socket.on('error', () => undefined).on('close', () => resolve())
    socket.on('open', () => socket.send(way === 0 ? 'cut' : 'hello'))
    socket.on('message', () => {
      if (way === 1) socket.terminate()
      else socket.close()
    })
  })
}

/**
 * By name: what to do, and how many do it at a time. `isHonest`: its requests may be retried, and must all get a 200.
 */
const CLIENTS = {
  honest: { many: 6, isHonest: true, do: to => ask(to, below(2) ? '/' : '/?x') },
  'slots taken': { many: 6, do: to => ask(to, '/work', { method: 'POST', body: 'x'.repeat(below(5000)) }) },
  'slots left behind': {
    many: 3,
    do: to => ask(to, '/work', { method: 'POST', body: 'x', leaveAfter: below(90) }),
  },
  'aborted before or within the answer': {
    many: 3,
    do: to => ask(to, '/trickle', { leaveAfter: below(400) }),
  },
  'slow readers': { many: 3, do: to => ask(to, '/big', { pauses: true }) },
  'readers that leave': { many: 2, do: to => ask(to, '/big', { pauses: true, leaveAfter: below(2000) }) },
  'upstream cuts': { many: 2, do: to => ask(to, ['/cut', '/gone'][below(2)]) },
  'upstream silent or stalled': { many: 2, do: to => ask(to, ['/silent', '/stall'][below(2)]) },
  'a flood refused': { many: 1, do: to => ask(to, '/flood', { method: 'POST', body: '' }) },
  'raw bytes and resets': { many: 4, do: to => sendRaw(to, RAW[below(RAW.length)], below(60)) },
  WebSockets: { many: 3, do: webSocket },
}

/** @returns the clients of the gateway at `url`, and `close` for what they keep open */
export function http1Clients(url) {
  const spoken = url.startsWith('https:') ? https : http
  const to = { url, http: spoken, agent: new spoken.Agent({ keepAlive: true }) }
  const clients = Object.entries(CLIENTS).map(([name, client]) => ({
    ...client,
    name,
    do: () => client.do(to),
  }))
  return { clients, close: () => to.agent.destroy() }
}
