/** An address that could not be reached and that no request tries: it is connected to now and then, until it is back. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import type { UpstreamProtocol } from '../../../config/words/words.js'
import { Backends } from '../../../gateway/forward/backends.js'
import { rawUpstream } from '../../helpers/raw.js'

/** The only address of an upstream, which has just refused a connection. */
async function scene(t: Test, protocol: UpstreamProtocol = 'http1') {
  const upstream = await rawUpstream()
  await upstream.stop()
  const seen: string[] = []
  const backends = new Backends(
    {
      name: 'app',
      urls: [upstream.url],
      protocol,
      timeouts: { connectMs: 300, headMs: 1000, idleMs: 1000, upgradeIdleMs: 1000 },
      fingerprintHeaders: { ja3: 'x-ja3', ja4: 'x-ja4' },
      proxyHeaders: [],
    },
    { unreachable: () => seen.push('unreachable'), returned: () => seen.push('returned') },
  )
  t.teardown(() => backends.close())
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const backend = backends.choose()
  backend.unreachable(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
  return { backend, seen, port: upstream.port }
}

/** Starts to listen, and counts connections. */
async function listen(t: Test, port: number) {
  const state = { connections: 0 }
  const server = createServer(socket => {
    state.connections += 1
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return state
}

/** Waits in real time. */
async function until(holds: () => boolean): Promise<boolean> {
  const end = performance.now() + 5000
  while (!holds() && performance.now() < end) await new Promise(resolve => setImmediate(resolve))
  return holds()
}

t.test('its return is noticed ten seconds later, and failed attempts are not reported', async t => {
  const { backend, seen, port } = await scene(t)
  t.match(backend.fault, { cause: 'connect ECONNREFUSED' })
  const { since } = backend.fault ?? {}
  mock.timers.tick(10_000)
  // The attempt fails, after which the next is due.
  await new Promise(resolve => setImmediate(resolve))
  const server = await listen(t, port)
  t.equal(backend.fault?.since, since)
  t.ok(
    await until(() => {
      mock.timers.tick(1000)
      return backend.fault === undefined
    }),
  )
  t.equal(server.connections, 1)
  t.same(seen, ['unreachable', 'returned'])
  mock.timers.tick(60_000)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(server.connections, 1, 'then nobody connects any more')
})

t.test('requests that fail put it off', async t => {
  const { backend, port } = await scene(t)
  const server = await listen(t, port)
  for (let i = 0; i < 5; i++) {
    mock.timers.tick(9000)
    backend.unreachable(new Error(`failure ${i}`))
  }
  await new Promise(resolve => setImmediate(resolve))
  t.equal(server.connections, 0)
})

t.test(
  'an address that accepts connections but speaks no HTTP/2 is not back for an upstream of HTTP/2',
  async t => {
    const { backend, port } = await scene(t, 'h2c')
    const server = await listen(t, port)
    mock.timers.tick(10_000)
    await until(() => server.connections === 1)
    const end = performance.now() + 600
    while (performance.now() < end) await new Promise(resolve => setImmediate(resolve))
    t.ok(backend.fault)
  },
)
