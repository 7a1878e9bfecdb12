/** Requests that wait instead of being refused, through the whole gateway. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { send } from '../helpers/http.js'
import { OK, rawClient } from '../helpers/raw.js'
import { stores } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'
import { answerOf, onBothWires, open } from './listen/http2-scene.js'
import { buckets, exportSlots, holding, metric, scene, waitingNow } from './waits.js'

for (const store of stores) {
  t.test(store.name, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return

    t.test(
      'a request over its quota waits for its window, and is answered as if it had come then',
      async t => {
        const { gateway, ask } = await scene(t, { settings, policies: buckets('wait: 5s') })
        t.equal((await ask('/paced/a')).status, 200)
        const startedAt = performance.now()
        const [second, third] = await Promise.all([ask('/paced/a'), ask('/paced/a')])
        t.match([second.status, third.status], [200, 200])
        t.ok(performance.now() - startedAt > 1500, 'one a second')
        t.match(third.headers.ratelimit, /"paced\.burst";r=0;t=1/)
        const waited = gateway.lines.filter(
          ({ msg, waited_ms }) => msg === 'request' && Number(waited_ms) > 0,
        )
        t.equal(waited.length, 2)
        t.ok(Number(waited[1]?.waited_ms) > 1000)
        t.ok(
          Number(waited[1]?.limiter_us) < 1000 * Number(waited[1]?.waited_ms),
          'waiting is no time spent on deciding',
        )
        t.match(
          gateway.lines.filter(({ decision, waited_ms }) => decision === 'allow' && waited_ms !== undefined),
          [{ rule: 'paced' }, { rule: 'paced' }],
        )
        t.equal(await metric(gateway, /^sluice_waited_total\{rule="paced",result="admitted"\} (\d+)$/m), 2)
        t.equal(await metric(gateway, /^sluice_wait_seconds_count (\d+)$/m), 2)
        t.equal(await waitingNow(gateway, 'paced'), 0)
      },
    )

    t.test('a slot goes to the first who waits for it', async t => {
      const policies = { 'slots.yaml': exportSlots('wait: 10s, waiting: 2') }
      const { app, gateway, ask } = await scene(t, { settings, policies })
      const first = ask('/exports', holding)
      await waitUntil('the slot to be held', () => app.waiting.length === 1)
      const order: string[] = []
      const later = async (name: string) => {
        const answer = await ask('/exports', { method: 'POST', headers: { 'x-name': name } })
        order.push(name)
        return answer.status
      }
      const second = later('second')
      await waitUntil('one to wait', async () => (await waitingNow(gateway, 'exports')) === 1)
      const third = later('third')
      await waitUntil('two to wait', async () => (await waitingNow(gateway, 'exports')) === 2)
      t.equal(await later('fourth'), 429, 'no more may wait')
      const { rules } = (await send(`${gateway.adminUrl}/live`)).json<{ rules: object[] }>()
      t.match(rules, [{ id: 'exports', waiting: 2 }])
      t.equal(app.started.length, 1)
      app.finish()
      t.match(await Promise.all([first, second, third]), [{ status: 200 }, 200, 200])
      t.same(order, ['fourth', 'second', 'third'])
      t.equal(await waitingNow(gateway, 'exports'), 0)
    })

    t.test('a request for a slot is refused when its wait is over', async t => {
      const policies = { 'slots.yaml': exportSlots('wait: 1s') }
      const { app, gateway, ask } = await scene(t, { settings, policies })
      const first = ask('/exports', holding)
      await waitUntil('the slot to be held', () => app.waiting.length === 1)
      const refused = await ask('/exports', { method: 'POST' })
      t.equal(refused.status, 429)
      t.equal(refused.headers['retry-after'], '1')
      const [record] = gateway.lines.filter(({ decision }) => decision === 'deny')
      t.match(record, { rule: 'exports', decision: 'deny' })
      t.ok(Number(record?.waited_ms) >= 1000)
      app.finish()
      await first
      t.equal((await ask('/exports', { method: 'POST' })).status, 200)
    })

    t.test('a client that leaves while it waits is dropped, and who is behind it is next', async t => {
      const policies = { 'slots.yaml': exportSlots('wait: 10s') }
      const { app, gateway, ask } = await scene(t, { settings, policies })
      const first = ask('/exports', holding)
      await waitUntil('the slot to be held', () => app.waiting.length === 1)
      const client = await rawClient(Number(new URL(gateway.url).port))
      client.send('POST /exports HTTP/1.1\r\nHost: acme.localhost\r\nContent-Length: 10\r\n\r\n0123456789')
      await waitUntil('it to wait', async () => (await waitingNow(gateway, 'exports')) === 1)
      const next = ask('/exports', { method: 'POST', headers: { 'x-name': 'next' } })
      await waitUntil('both to wait', async () => (await waitingNow(gateway, 'exports')) === 2)
      // Its body was sent, and nobody wants it yet.
      client.socket.end()
      await waitUntil('it to be gone', async () => (await waitingNow(gateway, 'exports')) === 1)
      t.equal(await metric(gateway, /^sluice_waited_total\{rule="exports",result="gone"\} (\d+)$/m), 1)
      const records = () => gateway.lines.filter(({ sent_status }) => sent_status === 0)
      await waitUntil('its record', () => records().length === 1)
      app.finish()
      t.match([await first, await next], [{ status: 200 }, { status: 200 }])
      t.match(
        app.started.map(({ headers }) => headers['x-name']),
        [undefined, 'next'],
      )
      const held = () => metric(gateway, /^sluice_inflight\{rule="exports"\} (\d+)$/m)
      await waitUntil('the slots to be given back', async () => (await held()) === 0)
    })

    t.test(
      'a rule that counts by the body waits, too, and the rest of the body stays where it is',
      async t => {
        const more = `version: 1
kind: in-flight
rules:
  - { id: login, match: [POST /login], key: [email-or-flow], missing: skip, max: 1, wait: 10s }
`
        const { app, gateway, ask } = await scene(t, {
          settings,
          policies: buckets('wait: 5s', 'burst: 1', more),
        })
        const headers = { 'content-type': 'application/json' }
        const body = JSON.stringify({ email: 'a@b.test', padding: 'x'.repeat(300_000) })
        const first = ask('/login', { method: 'POST', headers: { ...headers, 'x-wait': '1' }, body })
        await waitUntil('the slot to be held', () => app.waiting.length === 1)
        const second = ask('/login', { method: 'POST', headers, body })
        await waitUntil('it to wait', async () => (await waitingNow(gateway, 'login')) === 1)
        app.finish()
        t.match([await first, await second], [{ status: 200 }, { status: 200 }])
        const sent = gateway.lines.filter(({ msg }) => msg === 'request').map(({ bytes_in }) => bytes_in)
        t.same(sent, [Buffer.byteLength(body), Buffer.byteLength(body)])
      },
    )

    t.test('a client that asks before it sends a body is told to go on after the wait', async t => {
      const policies = { 'slots.yaml': exportSlots('wait: 10s') }
      const { app, gateway, ask } = await scene(t, { settings, policies })
      const first = ask('/exports', holding)
      await waitUntil('the slot to be held', () => app.waiting.length === 1)
      const client = await rawClient(Number(new URL(gateway.url).port))
      const head = 'Host: acme.localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n'
      client.send(`POST /exports HTTP/1.1\r\n${head}`)
      await waitUntil('it to wait', async () => (await waitingNow(gateway, 'exports')) === 1)
      t.equal(client.unread, '')
      app.finish()
      t.equal((await first).status, 200)
      t.match((await client.head()).line, /100/)
      client.send('hello')
      t.match((await client.head()).line, /200/)
      client.end()
    })

    t.test('a gateway that is drained answers those who wait', async t => {
      const { gateway, ask } = await scene(t, { settings, drain: '20s', policies: buckets('wait: 5s') })
      await ask('/paced/a')
      const waiting = ask('/paced/a')
      await waitUntil('it to wait', async () => (await waitingNow(gateway, 'paced')) === 1)
      const drained = gateway.drain()
      t.equal((await waiting).status, 200)
      await drained
    })

    t.test('one that waits during a reload ends by the policy it began with', async t => {
      const policies = { 'slots.yaml': exportSlots('wait: 10s') }
      const { app, gateway, ask } = await scene(t, { settings, policies })
      const first = ask('/exports', holding)
      await waitUntil('the slot to be held', () => app.waiting.length === 1)
      const waiting = ask('/exports', { method: 'POST' })
      await waitUntil('it to wait', async () => (await waitingNow(gateway, 'exports')) === 1)
      writeFileSync(join(gateway.folder, 'policies', 'slots.yaml'), exportSlots('count: handshake'))
      t.equal((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).status, 200)
      t.equal((await ask('/exports', { method: 'POST' })).status, 429, 'the new policy lets nobody wait')
      app.finish()
      t.match([await first, await waiting], [{ status: 200 }, { status: 200 }])
    })
  })
}

t.test('a WebSocket waits for its slot, and is opened then', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const policies = {
    'slots.yaml': `version: 1
kind: in-flight
rules: [{ id: feeds, match: [GET /feed], key: [project], max: 1, count: lifetime, wait: 10s }]
`,
  }
  const gateway = await testGateway(t, { upstream: `http://127.0.0.1:${port}`, policies })
  const dial = () => {
    const socket = new WebSocket(`ws://127.0.0.1:${new URL(gateway.url).port}/feed`, {
      headers: { host: 'acme.localhost' },
    })
    socket.on('error', () => {})
    return socket
  }
  const opened = (socket: WebSocket) => waitUntil('a WebSocket', () => socket.readyState === WebSocket.OPEN)
  const first = dial()
  await opened(first)
  const second = dial()
  await waitUntil('it to wait', async () => (await waitingNow(gateway, 'feeds')) === 1)
  const third = dial()
  await waitUntil('both to wait', async () => (await waitingNow(gateway, 'feeds')) === 2)
  second.terminate()
  await waitUntil('one to be gone', async () => (await waitingNow(gateway, 'feeds')) === 1)
  first.close()
  await opened(third)
  third.terminate()
})

onBothWires(t, async (t, { scene }) => {
  const { gateway, upstream, session } = await scene(t, undefined, {
    policies: { 'slots.yaml': exportSlots('wait: 10s') },
    timeouts: '{ connect: 10s, head: 30s, idle: 30s }',
  })
  const post = () => open(session, { ':method': 'POST', ':path': '/exports' }, '')
  const first = answerOf(post())
  const peer = await upstream.connection(0)
  await peer.head()
  const leaving = post()
  await waitUntil('it to wait', async () => (await waitingNow(gateway, 'exports')) === 1)
  const next = answerOf(post())
  await waitUntil('both to wait', async () => (await waitingNow(gateway, 'exports')) === 2)
  leaving.close()
  await waitUntil('one to be gone', async () => (await waitingNow(gateway, 'exports')) === 1)
  peer.send(OK)
  t.equal((await first).status, 200)
  await peer.head()
  peer.send(OK)
  t.equal((await next).status, 200)
})

t.test('explain says how long a request would wait', async t => {
  const quota = 'windows: [{ name: w, requests: 1, per: 5s }]'
  const policies = buckets('wait: 10s', quota, exportSlots('wait: 300ms'))
  const { app, gateway, ask } = await scene(t, { policies })
  const explain = async (method: string, target: string) => {
    const body = JSON.stringify({ method, target, project: 'acme' })
    const headers = { 'content-type': 'application/json' }
    const explained = await send(`${gateway.adminUrl}/explain`, { method: 'POST', headers, body })
    return explained.json<{ answer: { wait: { room_in_ms: number | null } | null } }>().answer
  }
  t.match(await explain('GET', '/paced/a'), { wait: null, code: null })
  await ask('/paced/a')
  const paced = await explain('GET', '/paced/a')
  t.match(paced, { status: 429, wait: { up_to_ms: 10_000 } })
  t.ok(Number(paced.wait?.room_in_ms) > 0)
  const asked = ['explain', 'GET', '/paced/a', '--project', 'acme', '--live', gateway.adminUrl]
  const { out } = await sluice(asked)
  t.match(
    out.replace(/\s+/g, ' '),
    /Would wait up to 10 s for room; there is some in \d+ m?s, .* in vain: Refused by paced: 429/,
  )
  const first = ask('/exports', holding)
  await waitUntil('the slot to be held', () => app.waiting.length === 1)
  t.match(await explain('POST', '/exports'), { wait: { up_to_ms: 300, room_in_ms: null } })
  app.finish()
  await first
})
