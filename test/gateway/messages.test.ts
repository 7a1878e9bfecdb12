/** Rules that count the messages of WebSockets: a whole gateway, on each counter store. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { testGateway } from '../helpers/gateway.js'
import { send } from '../helpers/http.js'
import { matchList } from '../helpers/lists.js'
import { redisCommand, redisUrl, startRedis } from '../helpers/redis.js'
import { onEachStore, redisSettings, type TestedStore } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'
import {
  BINARY,
  CONTINUATION,
  closeOf,
  frame,
  openSocket,
  PING,
  rawClose,
  rawWebSocket,
  TEXT,
  webSocketUpstream,
} from '../helpers/web-sockets.js'

const rule = (settings: string) =>
  `  - { id: chat, match: [GET /chat], key: [project], count: message, ${settings} }`
const policies = (...rules: string[]) => ({
  'messages.yaml': `version: 1\nkind: volumetric\nrules:\n${rules.join('\n')}\n`,
})

/** On a busy machine a slow handshake must not fail. */
const TIMEOUTS = '{ connect: 20s, head: 20s, idle: 20s }'

async function start(t: Test, store: TestedStore, settings: string, others: readonly string[] = []) {
  const upstream = await webSocketUpstream(t, { echo: true })
  const gateway = await testGateway(t, {
    upstream: upstream.url,
    timeouts: TIMEOUTS,
    settings: `log: { decisions: all, access: all }\n${await store.settings(t)}`,
    policies: policies(rule(settings), ...others),
  })
  /** `sluice_decisions_total` of the rule `chat`, by outcome. */
  const counted = async (outcome: string, id = 'chat') => {
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    const line = new RegExp(`^sluice_decisions_total\\{rule="${id}".*outcome="${outcome}".*\\} (\\d+)$`, 'm')
    return Number(line.exec(body)?.[1] ?? 0)
  }
  return { ...gateway, upstream, counted }
}

const sendAll = (socket: WebSocket, ...texts: string[]) => {
  for (const text of texts) socket.send(text)
}
const numbered = (count: number, from = 1) => Array.from({ length: count }, (_, i) => `m${i + from}`)

const memory: TestedStore = { name: 'in process', recorded: 'memory', settings: async () => '' }

// The tests mostly wait, so they run at the same time.
t.jobs = 4

onEachStore(
  t,
  'messages over the quota wait up to a second, then the WebSocket is closed',
  async (t, store) => {
    const { url, upstream, lines, counted } = await start(t, store, 'quota: { requests: 3, per: 60s }')
    const socket = await openSocket(t, url)
    sendAll(socket, ...numbered(5))
    const { status, reason, ms } = await closeOf(socket)
    t.equal(status, 1008)
    t.equal(reason, 'too many messages')
    t.ok(ms > 800 && ms < 2_000, `after about a second: ${ms}`)
    t.same(upstream.messages, ['m1', 'm2', 'm3'])
    await waitUntil('the close at the upstream', () => upstream.closed.length === 1)
    t.same(upstream.closed, [1001])
    const records = await waitUntil('the records', () => {
      const found = lines.filter(({ msg }) => msg === 'decision')
      return found.length === 2 && found
    })
    const chat = { rule: 'chat', mode: 'enforce', admitted: 3, refused: 1 }
    matchList(t, records, [
      { decision: 'allow', rule: null, sent_status: 101, messages: [chat] },
      {
        decision: 'deny',
        rule: 'chat',
        kind: 'volumetric',
        sent_status: 101,
        would_status: null,
        messages: [chat],
      },
    ])
    matchList(
      t,
      lines.filter(({ msg }) => msg === 'request'),
      [{ status: 101, messages: [chat] }],
    )
    t.equal(await counted('limited'), 1)
  },
)

onEachStore(t, 'a message that finds room within a second goes on', async (t, store) => {
  const { url, upstream, counted } = await start(t, store, 'quota: { requests: 4, per: 1s }')
  const socket = await openSocket(t, url)
  const texts = numbered(14)
  sendAll(socket, ...texts)
  await waitUntil('the last message', () => upstream.messages.length === 14, 30_000)
  t.same(upstream.messages, texts, 'each once, in order')
  t.equal(await counted('limited'), 0)
  t.equal(socket.readyState, socket.OPEN)
})

onEachStore(
  t,
  'several WebSockets of a key share each window, and none of them is closed',
  async (t, store) => {
    const { url, upstream, counted } = await start(t, store, 'quota: { requests: 6, per: 1s }')
    const sockets = await Promise.all([openSocket(t, url), openSocket(t, url), openSocket(t, url)])
    for (const socket of sockets) sendAll(socket, ...numbered(8))
    await waitUntil('the last message', () => upstream.messages.length === 24, 30_000)
    t.equal(await counted('limited'), 0)
    t.same(
      sockets.map(({ readyState }) => readyState),
      sockets.map(({ OPEN }) => OPEN),
    )
  },
)

onEachStore(t, 'the quota is that of the key, over all its WebSockets', async (t, store) => {
  const { url, upstream } = await start(t, store, 'quota: { requests: 10, per: 60s }')
  const [one, other, foreign] = await Promise.all([
    openSocket(t, url),
    openSocket(t, url),
    openSocket(t, url, { host: 'dev.localhost' }),
  ])
  const closes = Promise.all([closeOf(one), closeOf(other)])
  sendAll(one, ...numbered(11, 10))
  sendAll(other, ...numbered(11, 10))
  sendAll(foreign, ...numbered(10, 100))
  t.same(
    (await closes).map(({ status }) => status),
    [1008, 1008],
  )
  await waitUntil('all of the other project', () => upstream.messages.includes('m109'))
  t.equal(upstream.messages.filter(text => text.length === 3).length, 10)
  t.equal(foreign.readyState, foreign.OPEN)
})

t.test('two gateways on one Redis count the messages of a key together', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const onRedis: TestedStore = { ...memory, settings: async () => redisSettings(url) }
  const gateways = [
    await start(t, onRedis, 'quota: { requests: 300, per: 60s }'),
    await start(t, onRedis, 'quota: { requests: 300, per: 60s }'),
  ]
  const peers = await Promise.all(gateways.map(gateway => rawWebSocket(t, gateway.url)))
  for (const { socket } of peers) socket.write(Buffer.concat(numbered(1_000).map(text => frame(TEXT, text))))
  const closed = () => gateways.every(({ upstream }) => upstream.closed.length === 1)
  await waitUntil('both to be closed', closed, 30_000)
  const passed = gateways.map(({ upstream }) => upstream.messages)
  t.equal(passed.flat().length, 300)
  for (const messages of passed) t.same(messages, numbered(messages.length), 'a beginning of what was sent')
})

onEachStore(t, 'never more than the quota is admitted of many messages in one read', async (t, store) => {
  const { url, upstream } = await start(t, store, 'quota: { requests: 500, per: 60s }')
  const peer = await rawWebSocket(t, url)
  peer.socket.write(Buffer.concat(numbered(2_000).map(text => frame(TEXT, text))))
  await waitUntil('the close', () => upstream.closed.length === 1, 30_000)
  t.same(upstream.messages, numbered(500))
})

onEachStore(t, 'neither the handshake nor requests count, and control frames do not', async (t, store) => {
  const { url, upstream } = await start(t, store, 'quota: { requests: 2, per: 60s }, reads: true')
  const headers = { host: 'acme.localhost' }
  for (let i = 0; i < 5; i += 1) await send(`${url}/chat`, { headers })
  for (let i = 0; i < 5; i += 1) await openSocket(t, url)
  const socket = await openSocket(t, url)
  for (let i = 0; i < 5; i += 1) socket.ping()
  sendAll(socket, 'm1', 'm2')
  await waitUntil('both messages', () => upstream.messages.length === 2)
})

onEachStore(t, 'the fragments of a message are one message', async (t, store) => {
  const { url, upstream } = await start(t, store, 'quota: { requests: 2, per: 60s }')
  const peer = await rawWebSocket(t, url)
  for (let i = 0; i < 2; i += 1) {
    peer.socket.write(frame(TEXT, 'a', { final: false }))
    for (let j = 0; j < 5; j += 1) peer.socket.write(frame(CONTINUATION, 'b', { final: false }))
    peer.socket.write(frame(PING))
    peer.socket.write(frame(CONTINUATION, 'c'))
  }
  await waitUntil('both messages', () => upstream.messages.length === 2)
  t.same(upstream.messages, ['abbbbbc', 'abbbbbc'])
})

onEachStore(t, 'each message costs the fixed cost of the rule', async (t, store) => {
  const { url, upstream } = await start(t, store, 'cost: 5, quota: { requests: 14, per: 60s }')
  const socket = await openSocket(t, url)
  const close = closeOf(socket)
  sendAll(socket, ...numbered(4))
  t.equal((await close).status, 1008)
  t.same(upstream.messages, ['m1', 'm2'])
})

onEachStore(t, 'report-only holds nothing, and says what would have been refused', async (t, store) => {
  const { url, upstream, lines, counted } = await start(
    t,
    store,
    'mode: report-only, quota: { requests: 3, per: 60s }',
  )
  const socket = await openSocket(t, url)
  sendAll(socket, ...numbered(200))
  await waitUntil('the messages', () => upstream.messages.length === 200)
  socket.close()
  const record = await waitUntil('the record', () => lines.find(({ decision }) => decision === 'would_deny'))
  t.match(record, { rule: 'chat', messages: [{ mode: 'report-only', admitted: 3, refused: 197 }] })
  t.equal(await counted('would_limit'), 197)
})

onEachStore(t, 'a report-only rule counts each message once, however long it was held', async (t, store) => {
  const { url, upstream, counted } = await start(t, store, 'quota: { requests: 2, per: 1s }', [
    '  - { id: tried, match: [GET /chat], key: [client-ip], count: message, mode: report-only, quota: { requests: 100, per: 60s } }',
  ])
  const socket = await openSocket(t, url)
  sendAll(socket, ...numbered(5))
  await waitUntil('the messages', () => upstream.messages.length === 5)
  await waitUntil('the report', async () => (await counted('allowed', 'tried')) === 5)
})

t.test('a malformed frame closes the WebSocket with 1002, and does not reach the upstream', async t => {
  const { url, upstream } = await start(t, memory, 'quota: { requests: 100, per: 60s }')
  const long = Buffer.concat([Buffer.from([0x82, 0x80 | 126, 0, 5]), Buffer.alloc(9)])
  const huge = Buffer.from([0x82, 0x80 | 127, 0xff, 0, 0, 0, 0, 0, 0, 0])
  const malformed: [string, Buffer][] = [
    ['an unknown opcode', frame(3, 'x')],
    ['an unknown control opcode', frame(11)],
    ['no mask', frame(TEXT, 'x', { masked: false })],
    ['a fragmented control frame', frame(PING, '', { final: false })],
    ['a long control frame', frame(PING, 'x'.repeat(126))],
    ['a continuation of nothing', frame(CONTINUATION, 'x')],
    ['a message in a message', Buffer.concat([frame(TEXT, 'x', { final: false }), frame(BINARY, 'y')])],
    ['a length in too many bytes', long],
    ['a length above 2^63', huge],
  ]
  for (const [what, bytes] of malformed) {
    const before = upstream.messages.length
    const peer = await rawWebSocket(t, url)
    peer.socket.write(frame(TEXT, what))
    t.equal((await peer.bytes(2 + what.length)).slice(2), what)
    peer.socket.write(Buffer.concat([bytes, frame(TEXT, 'after')]))
    t.equal(await rawClose(peer), 1002, what)
    await waitUntil('the end at the upstream', () => upstream.server.clients.size === 0)
    t.same(upstream.messages.slice(before), [what])
  }
  t.notOk(
    upstream.closed.some(status => status !== 1001),
    `${upstream.closed}`,
  )
})

t.test('a compressed message passes as it is, and counts one', async t => {
  const { url, upstream } = await start(t, memory, 'quota: { requests: 1, per: 60s }')
  upstream.server.options.perMessageDeflate = true
  const socket = await openSocket(t, url)
  t.match(socket.extensions, /permessage-deflate/)
  const close = closeOf(socket)
  const text = 'compressible '.repeat(10_000)
  sendAll(socket, text, 'over')
  t.equal((await close).status, 1008)
  t.same(upstream.messages, [text])
})

t.test('what the upstream sends keeps coming while a message waits', async t => {
  const { url, upstream } = await start(t, memory, 'quota: { requests: 1, per: 60s }')
  const socket = await openSocket(t, url)
  const close = closeOf(socket)
  const received: string[] = []
  socket.on('message', data => received.push(String(data)))
  sendAll(socket, 'm1', 'm2')
  await waitUntil('the first', () => received.length === 1)
  for (const one of upstream.server.clients) one.send('news')
  await waitUntil('the news', () => received.includes('news'), 900)
  t.equal(socket.readyState, socket.OPEN)
  t.equal((await close).status, 1008)
})

t.test('a slot for the lifetime is given back when messages close the WebSocket', async t => {
  const upstream = await webSocketUpstream(t)
  const gateway = await testGateway(t, {
    upstream: upstream.url,
    timeouts: TIMEOUTS,
    policies: {
      ...policies(rule('quota: { requests: 1, per: 60s }')),
      'slots.yaml':
        'version: 1\nkind: in-flight\nrules: [{ id: open, match: [GET /chat], key: [project], max: 1, count: lifetime }]\n',
    },
  })
  for (let i = 0; i < 2; i += 1) {
    const socket = await waitUntil('a free slot', () => openSocket(t, gateway.url).catch(() => undefined))
    const close = closeOf(socket)
    sendAll(socket, ...numbered(2))
    t.equal((await close).status, 1008)
  }
})

t.test('a client that takes no notice of the close, and an upstream that does not, are cut', async t => {
  const { url, upstream } = await start(t, memory, 'quota: { requests: 1, per: 60s }')
  const peer = await rawWebSocket(t, url)
  for (const { _socket } of upstream.server.clients as unknown as Iterable<{ _socket: Socket }>)
    _socket.pause()
  peer.socket.write(Buffer.concat(numbered(3).map(text => frame(TEXT, text))))
  const since = performance.now()
  await waitUntil('the end', () => peer.closed, 6_000)
  t.ok(performance.now() - since < 4_500)
})

t.test('a mode set on the admin port applies to the next message of an open WebSocket', async t => {
  const { url, upstream, adminUrl } = await start(
    t,
    memory,
    'mode: report-only, quota: { requests: 1, per: 60s }',
  )
  const socket = await openSocket(t, url)
  sendAll(socket, ...numbered(5))
  await waitUntil('the messages', () => upstream.messages.length === 5)
  const set = await send(`${adminUrl}/rules/chat/mode`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mode: 'enforce', why: 'A flood.', by: 'anna' }),
  })
  t.ok(set.status < 300, set.body)
  const close = closeOf(socket)
  sendAll(socket, 'm6', 'm7')
  t.equal((await close).status, 1008)
  t.same(upstream.messages.slice(5), ['m6'], 'enforced and report-only counts are separate')
})

t.test('an upstream that closes while a client goes on sending ends both sides', async t => {
  const { url, upstream, lines } = await start(t, memory, 'quota: { requests: 1000000, per: 60s }')
  for (const close of ['end', 'resetAndDestroy'] as const) {
    const peer = await rawWebSocket(t, url)
    const beat = setInterval(() => peer.socket.write(frame(TEXT, 'more')), 1)
    t.teardown(() => clearInterval(beat))
    await waitUntil('a message', () => upstream.messages.length > 0)
    for (const { _socket } of upstream.server.clients as unknown as Iterable<{ _socket: Socket }>)
      _socket[close]()
    await waitUntil('the end', () => peer.ended || peer.closed)
    clearInterval(beat)
  }
  await waitUntil('the records', () => lines.filter(({ msg }) => msg === 'request').length === 2)
  t.notOk(lines.some(({ level }) => level === 'error'))
})

t.test('WebSockets that no such rule matches are passed on without a limit', async t => {
  const { url, upstream, lines } = await start(t, memory, 'quota: { requests: 1, per: 60s }')
  const socket = await openSocket(t, url, { path: '/other' })
  sendAll(socket, ...numbered(50))
  await waitUntil('all messages', () => upstream.messages.length === 50)
  socket.close()
  const record = await waitUntil('the record', () => lines.find(({ msg }) => msg === 'request'))
  t.notOk('messages' in record)
})

t.test('where messages cannot be counted, onStoreError decides', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const here: TestedStore = {
    ...memory,
    settings: async () => `redis: ${redis.url}\nstore: { deadline: 250ms }`,
  }
  const rules = (['open', 'closed'] as const).map(
    word =>
      `  - { id: ${word}, match: [GET /${word}], key: [project], count: message, onStoreError: ${word}, quota: { requests: 100, per: 60s } }`,
  )
  const { url, upstream } = await start(t, here, 'quota: { requests: 100, per: 60s }', rules)
  const open = await openSocket(t, url, { path: '/open' })
  const closed = await openSocket(t, url, { path: '/closed' })
  await redis.pause()
  sendAll(open, 'm1', 'm2')
  await waitUntil('both messages', () => upstream.messages.length === 2)
  const close = closeOf(closed)
  sendAll(closed, 'm3')
  t.match(await close, { status: 1013, reason: 'messages cannot be counted' })
  t.same(upstream.messages, ['m1', 'm2'])
})
