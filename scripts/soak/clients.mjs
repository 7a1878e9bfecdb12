/** What the gateway is put through: each does one thing, once, and gives back what it took. */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'

const agent = new Agent({ keepAlive: true })
/** For who still waits when all is over; the longest that anybody has to is a few time limits of the gateway. */
const PATIENCE_MS = 60_000
const HOST = 'soak.localhost'
const below = bound => Math.floor(Math.random() * bound)

/** Sends a request; resolves to its status, or to 0 when it was cut. */
function ask(url, path, { method = 'GET', body, leaveAfter, pauses = false, ...options } = {}) {
  return new Promise(resolve => {
    const sent = request(url + path, { method, agent, headers: { host: HOST, ...options.headers } })
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

/** Sends bytes as they are, waits a little, and goes: with a FIN or a reset. */
async function sendRaw(url, bytes, ms) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined).resume()
  socket.write(bytes, 'latin1')
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

function webSocket(url) {
  return new Promise(resolve => {
    const socket = new WebSocket(url.replace('http', 'ws'), { headers: { host: HOST } })
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
 * By name: what to do, and how many do it at a time. `honest` ones ask what may be asked twice, and must never hear a 5xx of
 * the gateway's own making.
 */
export const CLIENTS = {
  honest: {
    many: 6,
    do: url => ask(url, below(2) ? '/' : '/?x'),
  },
  'slots taken': { many: 6, do: url => ask(url, '/work', { method: 'POST', body: 'x'.repeat(below(5000)) }) },
  'slots left behind': {
    many: 3,
    do: url => ask(url, '/work', { method: 'POST', body: 'x', leaveAfter: below(90) }),
  },
  'aborted before or within the answer': {
    many: 3,
    do: url => ask(url, '/trickle', { leaveAfter: below(400) }),
  },
  'slow readers': { many: 3, do: url => ask(url, '/big', { pauses: true }) },
  'readers that leave': { many: 2, do: url => ask(url, '/big', { pauses: true, leaveAfter: below(2000) }) },
  'upstream cuts': { many: 2, do: url => ask(url, ['/cut', '/gone'][below(2)]) },
  'upstream silent or stalled': { many: 2, do: url => ask(url, ['/silent', '/stall'][below(2)]) },
  'a flood refused': { many: 1, do: url => ask(url, '/flood', { method: 'POST', body: '' }) },
  'raw bytes and resets': { many: 4, do: url => sendRaw(url, RAW[below(RAW.length)], below(60)) },
  WebSockets: { many: 3, do: webSocket },
}

/** Lets all clients work until `until` says no; how often each did, which statuses came, and who was left waiting. */
export async function work(url, until) {
  const done = {}
  const statuses = {}
  const count = (name, status) => {
    if (status === undefined) return
    statuses[name] ??= {}
    statuses[name][status] = (statuses[name][status] ?? 0) + 1
  }
  const waiting = new Set()
  const running = Object.entries(CLIENTS).flatMap(([name, client]) => {
    done[name] = 0
    return Array.from({ length: client.many }, async () => {
      while (until()) {
        const turn = { name }
        waiting.add(turn)
        const status = await client.do(url)
        waiting.delete(turn)
        done[name] += 1
        count(name, status)
        await sleep(below(10))
      }
    })
  })
  const end = async () => {
    while (until()) await sleep(100)
    await sleep(PATIENCE_MS, undefined, { ref: false })
  }
  await Promise.race([Promise.all(running), end()])
  agent.destroy()
  return { done, statuses, leftWaiting: [...waiting].map(({ name }) => name) }
}
