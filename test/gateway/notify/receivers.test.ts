/** Receivers of notifications that are down, slow, hostile, or not allowed. */
import { createServer } from 'node:net'
import t from 'tap'
import { send } from '../../helpers/http.js'
import { startReceiver } from '../../helpers/receiver.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { ask, askTimes, monthly, notify, startNotifying, thresholds } from './scene.js'

t.test('a receiver that fails gets the same message again', async t => {
  const receiver = await startReceiver(t, call => (call === 0 ? 500 : 204))
  const gateway = await startNotifying(t, monthly(notify(receiver.url, '[80%]')))
  await askTimes(gateway, 8)
  await waitUntil('the second attempt', () => receiver.calls.length === 2)
  const [first, second] = receiver.calls
  t.equal(first?.text, second?.text)
  t.equal(first?.headers['webhook-id'], second?.headers['webhook-id'])
  const counted = (await send(`${gateway.adminUrl}/metrics`)).body
  t.match(counted, 'sluice_notifications_total{result="failed"} 1')
  t.match(
    gateway.lines.filter(({ level }) => level === 'warn'),
    [{ problem: 'the receiver answered 500' }],
  )
})

t.test('a redirect is a failure and not followed; 410 ends the attempts', async t => {
  const elsewhere = await startReceiver(t)
  const receiver = await startReceiver(t, call => (call === 0 ? 307 : 410))
  const gateway = await startNotifying(t, monthly(notify(receiver.url)))
  await askTimes(gateway, 10)
  await waitUntil('both calls', () => receiver.calls.length === 2)
  await waitUntil('a call to be given up', async () =>
    (await send(`${gateway.adminUrl}/metrics`)).body.includes(
      'sluice_notifications_total{result="dropped"} 1',
    ),
  )
  t.same(elsewhere.calls, [])
})

t.test('a receiver that never answers delays neither requests nor others nor the end', async t => {
  const silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  const { port } = silent.address() as { port: number }
  const receiver = await startReceiver(t)
  const projects = `version: 1
projects:
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
  - id: other
    plan: growth
    environment: production
    hosts: [other.localhost]
    overrides: { orders: { notify: ${notify(receiver.url)} } }
`
  const gateway = await startNotifying(t, monthly(notify(`http://127.0.0.1:${port}/`)), { projects })
  const startedAt = performance.now()
  await askTimes(gateway, 10)
  for (let i = 0; i < 10; i += 1) await ask(gateway, '/orders', { host: 'other.localhost' })
  await waitUntil('the other project', () => receiver.calls.length === 2)
  t.ok(performance.now() - startedAt < 5000)
  const drainedAt = performance.now()
  await gateway.drain()
  t.ok(performance.now() - drainedAt < 4000, 'the end waits for two seconds at most')
  t.match(gateway.lines.filter(({ level }) => level === 'warn').at(-1), {
    problem: 'the gateway is shutting down',
  })
})

t.test('what waits when a gateway ends is sent before', async t => {
  const receiver = await startReceiver(t)
  const gateway = await startNotifying(t, monthly(notify(receiver.url)))
  await askTimes(gateway, 10)
  await gateway.drain()
  t.same(thresholds(receiver.calls), [80, 100])
})

t.test('private addresses are not called unless that is allowed, and requests do not notice', async t => {
  const receiver = await startReceiver(t)
  for (const url of [receiver.url, receiver.url.replace('127.0.0.1', 'localhost')]) {
    const gateway = await startNotifying(t, monthly(notify(url)), {
      webhookTargets: { allowPrivate: false, allowHttp: true },
    })
    t.ok((await askTimes(gateway, 10)).every(status => status === 200))
    await waitUntil('the refusal', () =>
      gateway.lines.some(({ problem }) => /is not a public address/.test(String(problem))),
    )
  }
  await sleep(50)
  t.same(receiver.calls, [])
})
