/** Requests during changes of the configuration: none fails, and no count is lost. */
import { once } from 'node:events'
import { Agent, type ServerResponse } from 'node:http'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { gatewayYaml, PROJECTS } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'
import { stores } from '../../helpers/stores.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { WaitingApp } from '../../helpers/waiting-app.js'
import { type Edited, inFlight, limits, start } from './reloading.js'

const OTHER = '{ id: other, plan: growth, environment: production, hosts: [other.localhost] }'

/** Sends requests continuously on its own connections until it is stopped. */
function traffic(gateway: Edited, path: string, connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const seen = { admitted: 0, refused: 0, failed: [] as unknown[] }
  let isRunning = true
  const run = async () => {
    while (isRunning) {
      try {
        const { status } = await gateway.ask(path, { agent })
        if (status === 200) seen.admitted += 1
        else if (status === 429) seen.refused += 1
        else seen.failed.push(status)
      } catch (error) {
        seen.failed.push(error)
      }
    }
  }
  const running = Array.from({ length: connections }, run)
  return {
    seen,
    async stop() {
      isRunning = false
      await Promise.all(running)
      agent.destroy()
    },
  }
}

for (const store of stores) {
  t.test(
    `a quota edited under traffic applies at once and forgets nothing that was spent, ${store.name}`,
    async t => {
      const settings = await store.settings(t)
      if (settings === undefined) return
      const file = 'policies/limits.yaml'
      const gateway = await start(t, { settings })
      const { edit, ask } = gateway
      const scim = traffic(gateway, '/scim/v2/Users', 8)
      const others = traffic(gateway, '/elsewhere', 4)
      /** The number admitted, once a hundred more were refused: denials are cached by then. */
      const admitted = async () => {
        const { refused } = scim.seen
        await waitUntil('refusals', () => scim.seen.refused > refused + 100)
        return scim.seen.admitted
      }
      const asDev = () => ask('/scim/v2/Users', { headers: { host: 'dev.localhost' } })
      for (let i = 0; i < 3; i += 1) t.equal((await asDev()).status, 200)
      t.equal(await admitted(), 5)
      t.equal((await edit(file, limits({ scim: 20 }))).status, 200)
      t.equal(await admitted(), 20, 'raised from 5 to 20 it admits fifteen more')
      await edit(file, limits({ scim: 2 }))
      t.equal((await asDev()).status, 429, 'lowered to 2 it refuses projects at once that had quota left')
      t.equal(await admitted(), 20)
      t.match((await ask('/scim/v2/Users')).headers, { 'x-ratelimit-limit': /2;w=60/ })
      await edit(file, limits({ scim: 2, others: 9000 }))
      await edit('policies/in-flight.yaml', inFlight(3))
      await edit('projects.yaml', PROJECTS.replace('projects:', `projects:\n  - ${OTHER}`))
      t.equal(await admitted(), 20, 'edits elsewhere admit none')
      await edit(file, limits({ scim: 25, others: 9000 }))
      t.equal(await admitted(), 25, 'raised again it still counts what was spent')
      t.match((await asDev()).headers, { 'x-ratelimit-remaining': '21' })

      await Promise.all([scim.stop(), others.stop()])
      const last = await ask('/elsewhere')
      const spent = 9000 - Number(last.headers['x-ratelimit-remaining'])
      t.equal(spent, others.seen.admitted + 1, 'the other rule counts every request through every edit')
      t.same([...scim.seen.failed, ...others.seen.failed], [])
    },
  )

  t.test(`an edited number of slots applies at once to slots already held, ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const waiting: ServerResponse[] = []
    const upstream = await startApp(t, (_req, res) => void waiting.push(res))
    const gateway = await start(t, {
      upstream,
      policies: { 'limits.yaml': limits(), 'in-flight.yaml': inFlight(1) },
      settings,
    })
    const post = () => gateway.ask('/jobs', { method: 'POST' })
    const held = [post()]
    await waitUntil('the first', () => waiting.length === 1)
    t.equal((await post()).status, 429)
    await gateway.edit('policies/in-flight.yaml', inFlight(2))
    held.push(post())
    await waitUntil('a second, at once', () => waiting.length === 2)
    await gateway.edit('policies/in-flight.yaml', inFlight(1))
    t.equal((await post()).status, 429)
    waiting.pop()?.end()
    await held[1]
    t.equal((await post()).status, 429, 'the slot still held is the only one allowed')
    waiting.pop()?.end()
    await held[0]
    const next = waitUntil('a free slot', async () => (await post()).status === 200)
    await waitUntil('the upstream', () => waiting.pop()?.end('done'))
    await next
  })
}

/** Whether a connection that brought requests is still open. */
const isConnected = ({ started }: WaitingApp) => started.some(({ socket }) => !socket.destroyed)

t.test('requests finish on the upstream they began on, whose connections are then closed', async t => {
  const first = new WaitingApp('first')
  const second = new WaitingApp('second')
  const [a, b] = [await startApp(t, first.handler), await startApp(t, second.handler)]
  const { ask, edit } = await start(t, {
    upstream: a,
    policies: { 'limits.yaml': limits(), 'in-flight.yaml': inFlight(1) },
  })
  t.equal((await ask('/x')).body, 'first')
  const wait = { 'x-wait': '1' }
  const slow = ask('/slow', { headers: wait })
  const leaving = new AbortController()
  await waitUntil('the first at work', () => first.waiting.length === 1)
  const held = ask('/jobs', { method: 'POST', headers: wait, signal: leaving.signal })
  await waitUntil('both at work', () => first.waiting.length === 2)

  t.equal((await edit('gateway.yaml', gatewayYaml({ upstream: b }))).status, 200)
  t.equal((await ask('/x')).body, 'second', 'the next request goes to the new upstream')
  const [slowly, holding] = first.waiting as [ServerResponse, ServerResponse]
  slowly.end('first')
  t.match(await slow, { status: 200, body: 'first' })
  leaving.abort()
  await t.rejects(held, { name: 'AbortError' })
  await sleep(50)
  t.ok(isConnected(first), 'a request that holds a slot goes on when its client has left')
  t.equal((await ask('/jobs', { method: 'POST' })).status, 429, 'its slot stays held')
  holding.end('first')
  await waitUntil('the former connections are closed', () => !isConnected(first))
  await waitUntil('the slot is free', async () => (await ask('/jobs', { method: 'POST' })).status === 200)

  const before = second.started.at(-1)?.socket
  await edit('policies/limits.yaml', limits({ scim: 9 }))
  await ask('/x')
  t.equal(second.started.at(-1)?.socket, before, 'an unchanged upstream keeps its connections')
})

t.test('a WebSocket survives reloads', async t => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  t.teardown(() => server.close())
  server.on('connection', socket => socket.on('message', data => socket.send(`echo ${data}`)))
  const { port } = server.address() as { port: number }
  const elsewhere = await startApp(t, (_req, res) => res.end('elsewhere'))
  const { url, edit, ask } = await start(t, { upstream: `http://127.0.0.1:${port}` })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/chat`, { headers: { host: 'acme.localhost' } })
  const heard: string[] = []
  socket.on('message', data => heard.push(String(data)))
  await waitUntil('the handshake', () => socket.readyState === WebSocket.OPEN)
  await edit('gateway.yaml', gatewayYaml({ upstream: elsewhere }))
  await edit('policies/limits.yaml', limits({ scim: 9 }))
  t.equal((await ask('/x')).body, 'elsewhere')
  socket.send('hello')
  await waitUntil('the echo', () => heard[0] === 'echo hello')
  socket.close()
  await waitUntil('the end', () => server.clients.size === 0)
})

t.test('a hundred reloads under load fail no request and leave no socket open', async t => {
  const upstream = await startApp(t, (req, res) => req.resume() && res.end('done'))
  // Clients, gateway and upstream share one core, which must not look like a slow upstream.
  const timeouts = '{ connect: 30s, head: 30s, idle: 2s }'
  const policies = { 'limits.yaml': limits({ others: 1e6 }) }
  const gateway = await start(t, { upstream, timeouts, policies })
  const load = traffic(gateway, '/x', 64)
  const resources = () => {
    const counts: Record<string, number> = {}
    for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
    return counts
  }
  await waitUntil('load', () => load.seen.admitted > 500)
  for (let i = 0; i < 100; i += 1) {
    // Every reload replaces the upstream, every other one the policy as well.
    gateway.write('gateway.yaml', gatewayYaml({ upstream, timeouts }).replace('idle: 2s', `idle: ${i + 3}s`))
    if (i % 2 === 0) gateway.write('policies/limits.yaml', limits({ others: 1e6 + i }))
    t.equal((await gateway.reloader.reload('SIGHUP')).result, 'loaded')
    const { admitted } = load.seen
    await waitUntil('requests between reloads', () => load.seen.admitted > admitted)
  }
  await load.stop()
  t.same(load.seen.failed, [])
  t.equal(load.seen.refused, 0)
  await gateway.drain()
  await waitUntil('no socket is left', () => resources().TCPSocketWrap === undefined)
})
