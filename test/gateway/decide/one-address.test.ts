/** A Cluster that is reached by the address of one server, as managed stores and proxies offer it. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { Answer } from '../../../gateway/decide/store/store.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { redisCommand, startCluster, startOneNodeCluster } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'
import { meter, minute, storeOn } from './opened.js'

t.test('a Cluster behind the address of one server', { buffered: true }, async t => {
  if (redisCommand(t) === undefined) return
  const server = await startOneNodeCluster()
  const client = new Redis(server.url).on('error', () => {})
  t.teardown(async () => {
    client.disconnect()
    await server.stop()
  })
  const inSlots = /keeps keys in slots, like a Cluster/

  /** Asks across three slots: a project's, and two without a project. */
  const countsAcrossSlots = async (t: Test, url: string, tag: string) => {
    const { ask, lines, changes } = await storeOn(t, url)
    const across = [
      minute(`sluice:1:{${tag}}:e:a:b`, 3),
      meter(`sluice:1:*:{x:${tag}}:e`, 10),
      minute(`sluice:1:*:{y:${tag}}:e`, 10),
    ]
    const answers: Answer[][] = []
    for (let i = 0; i < 5; i += 1) answers.push(await ask(...across))
    t.same(
      answers.map(given => given.every(({ granted }) => granted)),
      [true, true, true, false, false],
    )
    t.ok(answers.flat().every(({ store }) => store === 'redis'))
    t.same(lines.filter(({ msg }) => inSlots.test(msg)).length, 1, 'said once')
    t.same(changes, [], 'Redis never counts as away')
  }

  t.test('says so when it is asked, and is counted from the first request', t =>
    countsAcrossSlots(t, server.url, 'asked'),
  )

  t.test('is said to be that once, however many connections a gateway has', async t => {
    const upstream = await startApp(t, (_req, res) => res.end())
    const { url, lines } = await testGateway(t, { upstream, settings: `redis: ${server.url}` })
    for (let i = 0; i < 3; i += 1) await send(`${url}/x`, { headers: { host: 'acme.localhost' } })
    await waitUntil('it to be said', () => lines.some(({ msg }) => inSlots.test(String(msg))))
    t.equal(lines.filter(({ msg }) => inSlots.test(String(msg))).length, 1)
  })

  t.test('hides it, and is known by its refusal of a script', async t => {
    await client.call('ACL', 'SETUSER', 'quiet', 'on', '>secret', '~*', '+@all', '-info')
    await countsAcrossSlots(t, server.url.replace('://', '://quiet:secret@'), 'hidden')
  })

  t.test('is known by the first request if it was away at the start', async t => {
    await server.kill()
    const { ask, lines } = await storeOn(t, server.url)
    await server.restart()
    await waitUntil('Redis to count', async () => (await ask(minute('{back}', 1000)))[0]?.store === 'redis')
    t.match(await ask(minute('{back}', 1000), minute('{other}', 1000)), [
      { store: 'redis' },
      { store: 'redis' },
    ])
    t.ok(lines.some(({ msg }) => inSlots.test(msg)))
  })
})

t.test('one node of a Cluster of several, reached like one server, is said to be that', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startCluster()
  t.teardown(() => redis.stop())
  const address = redis.masters[0]?.url as string
  const { ask, lines } = await storeOn(t, address)
  for (let i = 0; i < 20; i += 1) await ask(minute(`{some-${i}}`, 10))
  const said = lines.filter(({ msg }) => msg.includes('one node of a Cluster'))
  t.match(said, [{ msg: `Set "redis" to ${address.replace('redis:', 'redis+cluster:')}` }])
  t.equal(said.length, 1)
})
