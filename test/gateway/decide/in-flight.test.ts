/** Slots from the first byte to the last, as clients experience them: a whole gateway, on each counter store. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { rawClient } from '../../helpers/raw.js'
import { onEachStore, type TestedStore } from '../../helpers/stores.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const KEY = '[project, full-path]'
const policies = (settings: string) => ({
  'in-flight.yaml': `version: 1
kind: in-flight
rules:
  - { id: work, match: [POST /jobs/**, GET /jobs/**], key: ${KEY}, slotTtl: 60s, ${settings} }
`,
})

/** An upstream that responds at once, except to requests with `x-wait`, which the test finishes one by one. */
async function startWork(t: Test) {
  const started: { req: IncomingMessage; res: ServerResponse }[] = []
  const server = createServer((req, res) => {
    started.push({ req, res })
    if (req.headers['x-wait'] === undefined) res.end()
  })
  const sockets = new WebSocketServer({ server })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { started, sockets, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const HEAD = 'POST /jobs/1 HTTP/1.1\r\nHost: acme.localhost\r\nX-Wait: 1\r\n'

/** A gateway with one in-flight rule, and the helpers of a test. */
async function start(t: Test, store: TestedStore, rule: string, timeouts = '{ head: 20s, idle: 20s }') {
  const work = await startWork(t)
  const gateway = await testGateway(t, {
    upstream: work.url,
    settings: await store.settings(t),
    policies: policies(rule),
    timeouts,
  })
  const { port } = new URL(gateway.url)
  const client = async (text: string) => {
    const peer = await rawClient(Number(port))
    t.teardown(() => peer.socket.destroy())
    return peer.send(text)
  }
  /** The status of a request that gets its response at once. */
  const knock = async () => {
    const sent = { method: 'POST', headers: { host: 'acme.localhost' } }
    return (await send(`${gateway.url}/jobs/1`, sent)).status
  }
  const held = async () => {
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    return Number(/^sluice_inflight\{rule="work"\} (\d+)$/m.exec(body)?.[1])
  }
  const freed = () => waitUntil('the slot to be free', async () => (await knock()) === 200, 30_000)
  return { ...gateway, work, client, knock, held, freed }
}

// The tests mostly wait, so they run at the same time.
t.jobs = 4

onEachStore(
  t,
  'a request in flight longer than maxHold loses its slot, once and with one warning',
  async (t, store) => {
    const { client, work, knock, held, lines } = await start(t, store, 'max: 1, maxHold: 3s')
    const first = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
    await waitUntil('the request', () => work.started.length === 1)
    t.equal(await knock(), 429)
    t.equal(await held(), 1)
    await waitUntil('maxHold', async () => (await held()) === 0)
    t.equal(await knock(), 200)
    work.started[0]?.res.end('late')
    t.equal((await first.message()).body, 'late', 'its own response still arrives')
    t.equal(await held(), 0)
    const warnings = lines.filter(({ level, rule }) => level === 'warn' && rule !== undefined)
    matchList(t, warnings, [{ rule: 'work', msg: /maxHold/ }])
    t.notMatch(JSON.stringify(warnings), /acme|jobs\/1/, 'the warning shows no key')
  },
)

onEachStore(t, 'an endless response whose client has left is cut when maxHold is over', async (t, store) => {
  const { client, work, knock, held } = await start(t, store, 'max: 1, maxHold: 3s')
  const peer = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
  const { res } = await waitUntil('the request', () => work.started[0])
  const beat = setInterval(() => res.write('x'), 20)
  t.teardown(() => clearInterval(beat))
  await peer.head()
  peer.reset()
  await sleep(100)
  t.equal(await knock(), 429, 'the upstream is still working')
  await waitUntil('the cut', () => res.destroyed)
  t.equal(await held(), 0)
})

onEachStore(
  t,
  'a client that leaves before or during its response keeps its slot until the upstream is done',
  async (t, store) => {
    const { client, work, knock, held, freed } = await start(t, store, 'max: 1')
    for (const answered of [false, true]) {
      const number = work.started.length
      const peer = await client(`${HEAD}Content-Length: 2\r\n\r\nhi`)
      const { res } = await waitUntil('the request', () => work.started[number])
      if (answered) {
        res.write('part')
        await peer.head()
      }
      peer.reset()
      await sleep(50)
      t.equal(await knock(), 429)
      res.end('done')
      await freed()
      t.equal(await held(), 0)
    }
  },
)

onEachStore(
  t,
  'a client that stops reading or sending is cut at the idle limit and loses its slot',
  async (t, store) => {
    const { client, work, knock, held, freed } = await start(t, store, 'max: 1', '{ idle: 2s }')
    const reader = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
    const { res } = await waitUntil('the request', () => work.started[0])
    res.end(Buffer.alloc(64 * 1024 * 1024))
    await reader.head()
    reader.socket.pause()
    t.equal(await knock(), 429)
    await freed()
    reader.socket.resume()
    await waitUntil('the cut', () => reader.ended || reader.closed)

    const sender = await client(`${HEAD}Content-Length: 10\r\n\r\nx`)
    await waitUntil('the request', () => work.started.at(-1)?.req.readableLength)
    t.equal(await knock(), 429)
    t.match((await sender.message({ tillClose: true })).line, / 408 /)
    await freed()
    t.equal(await held(), 0)
  },
)

onEachStore(t, 'a slot is given back when the upstream fails, stays silent or refuses', async (t, store) => {
  const { client, work, held, freed } = await start(t, store, 'max: 1', '{ head: 1500ms }')
  const endings: [string, (res: ServerResponse) => void, RegExp][] = [
    ['resets', res => res.socket?.resetAndDestroy(), / 502 /],
    ['is silent', () => {}, / 504 /],
    ['refuses', res => res.writeHead(409, { 'content-length': 0 }).end(), / 409 /],
  ]
  for (const [what, end, line] of endings) {
    const number = work.started.length
    const peer = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
    end((await waitUntil('the request', () => work.started[number])).res)
    t.match((await peer.message()).line, line, what)
    await freed()
    t.equal(await held(), 0)
  }
})

/** Opens a WebSocket: the status is 101, or that of the rejected handshake. */
async function open(url: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/jobs/1`, {
    headers: { host: 'acme.localhost' },
  })
  socket.on('error', () => {})
  const status = await Promise.race([
    once(socket, 'open').then(() => 101),
    once(socket, 'unexpected-response').then(([, answer]) => answer.statusCode as number),
  ])
  return { socket, status }
}

onEachStore(
  t,
  'a WebSocket with count: handshake gives its slot back once the tunnel is open',
  async (t, store) => {
    const { url, held } = await start(t, store, 'max: 1')
    const all = [await open(url), await open(url)]
    t.same(
      all.map(({ status }) => status),
      [101, 101],
    )
    t.equal(await held(), 0)
    for (const { socket } of all) socket.terminate()
  },
)

onEachStore(
  t,
  'a WebSocket with count: lifetime holds its slot until the tunnel has closed, however it closes',
  async (t, store) => {
    const { url, work, knock, held, freed } = await start(
      t,
      store,
      'max: 1, count: lifetime',
      '{ upgradeIdle: 4s }',
    )
    const closings: [string, (client: WebSocket, upstream: WebSocket) => void][] = [
      ['closed in order', client => client.close()],
      ['closed by the upstream', (_, upstream) => upstream.close()],
      ['reset by the client', client => client.terminate()],
      ['reset by the upstream', (_, upstream) => upstream.terminate()],
      ['silent', () => {}],
    ]
    for (const [what, close] of closings) {
      const { socket, status } = await open(url)
      t.equal(status, 101, what)
      t.equal((await open(url)).status, 429)
      t.equal(await knock(), 429)
      t.equal(await held(), 1)
      const gone = once(socket, 'close')
      const [upstream] = work.sockets.clients
      const goneThere = once(upstream as WebSocket, 'close')
      close(socket, upstream as WebSocket)
      await Promise.all([gone, goneThere])
      await freed()
      t.equal(await held(), 0)
    }
  },
)

onEachStore(t, 'a plain GET on the path of a WebSocket takes no slot', async (t, store) => {
  const { url } = await start(t, store, 'max: 1, count: lifetime')
  const { socket } = await open(url)
  const answer = await send(`${url}/jobs/1`, { headers: { host: 'acme.localhost' } })
  t.equal(answer.status, 200)
  socket.terminate()
})

onEachStore(t, 'a refused WebSocket handshake gives its slot back after its response', async (t, store) => {
  const { url, work, held } = await start(t, store, 'max: 1, count: lifetime')
  work.sockets.options.verifyClient = () => false
  t.equal((await open(url)).status, 401)
  await waitUntil('the slot to be free', async () => (await held()) === 0)
})

onEachStore(t, 'a report-only rule counts slots, and refuses nothing', async (t, store) => {
  const { client, work, knock, held, lines } = await start(t, store, 'max: 1, mode: report-only')
  const first = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
  await waitUntil('the request', () => work.started.length === 1)
  t.equal(await knock(), 200)
  await waitUntil('the record', () => lines.some(line => line.decision === 'would_deny'))
  t.equal(await held(), 1)
  first.reset()
  await waitUntil('the upstream to be cut, for nothing is enforced', () => work.started[0]?.res.destroyed)
  await waitUntil('the slot to be free', async () => (await held()) === 0)
  t.equal(await knock(), 200)
  t.equal(lines.filter(line => line.decision === 'would_deny').length, 1)
})
