/** Changes made on two admin ports at once, also while Redis loses its data: none is lost, none is made twice. */
import { type AddressInfo, connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const DENY = { networks: ['203.0.113.0/24'], action: 'deny', why: 'It scrapes.', by: 'anna' }
const KEY = 'sluice:1:access'

type Admin = Awaited<ReturnType<typeof start>>

async function start(t: Test, port: number) {
  const gateway = await testGateway(t, {
    upstream: 'http://127.0.0.1:1',
    settings: `redis: redis://127.0.0.1:${port}`,
  })
  const put = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    return send(gateway.adminUrl + path, { method: 'PUT', headers, body: JSON.stringify(body) })
  }
  const remove = (id: string) =>
    send(`${gateway.adminUrl}/access/${id}?why=done&by=anna`, { method: 'DELETE' })
  const entries = async () => {
    const { entries } = (await send(`${gateway.adminUrl}/access`)).json<{ entries: { id: string }[] }>()
    return entries.sort((one, other) => (one.id < other.id ? -1 : 1))
  }
  const ids = async () => (await entries()).map(({ id }) => id)
  return { put, remove, entries, ids }
}

/** A proxy that awaits `steps.before` each time before it forwards commands about access entries. */
async function steppingProxy(t: Test, port: number) {
  const steps: { before?: ((commands: string) => Promise<void>) | undefined } = {}
  const server = createServer(client => {
    const target = connect(port, '127.0.0.1')
    let turn = Promise.resolve()
    client.on('data', chunk => {
      turn = turn.then(async () => {
        if (chunk.includes(KEY)) await steps.before?.(chunk.toString())
        target.write(chunk)
      })
    })
    target.on('data', chunk => client.write(chunk))
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const)
      one.on('error', () => undefined).on('close', () => other.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, steps }
}

/** A Redis of the test's own, and a client that takes its data away. */
async function redisToLose(t: Test) {
  const redis = await startRedis()
  const direct = new Redis(redis.url)
  t.teardown(async () => {
    direct.disconnect()
    await redis.stop()
  })
  return { redis, direct }
}

/** Nothing gets through to Redis until the returned function is called. */
function hold({ steps }: Awaited<ReturnType<typeof steppingProxy>>): () => void {
  let release: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  steps.before = () => held
  return () => {
    steps.before = undefined
    release()
  }
}

t.test('two admin ports change the same entry, while Redis loses its data at any step', async t => {
  if (!redisCommand(t)) return
  const { redis, direct } = await redisToLose(t)
  const proxy = await steppingProxy(t, redis.port)
  const one: Admin = await start(t, proxy.port)
  const other: Admin = await start(t, redis.port)
  t.equal((await one.put('/access/before', DENY)).status, 201)
  const steps = 5
  for (let emptied = 0; emptied <= steps; emptied += 1) {
    for (let overtaken = emptied; overtaken <= steps; overtaken += 1) {
      const id = `entry-${emptied}-${overtaken}`
      // What only one gateway knows is lost with Redis, so both know all when it is emptied.
      t.same(await one.ids(), await other.ids())
      const others: number[] = []
      let step = 0
      let isSent = false
      proxy.steps.before = async commands => {
        const now = step
        step += 1
        if (now === emptied && !isSent) await direct.flushdb()
        if (now === overtaken) others.push((await other.put(`/access/${id}`, DENY)).status)
        isSent ||= commands.includes(id)
      }
      const own = (await one.put(`/access/${id}`, DENY)).status
      proxy.steps.before = undefined
      const when = `emptied before step ${emptied}, overtaken before ${overtaken} of ${step}`
      if (others.length === 0) t.equal(own, 201, when)
      else t.same([own, ...others].sort(), [200, 201], `one creates it, one changes it: ${when}`)
      const ids = await one.ids()
      t.ok(ids.includes('before') && ids.includes(id), `nothing is lost: ${when}`)
    }
  }
  t.same(await one.ids(), await other.ids())
})

t.test('a gateway that was cut off brings back only what a Redis that lost its data has not', async t => {
  if (!redisCommand(t)) return
  const { redis, direct } = await redisToLose(t)
  const proxy = await steppingProxy(t, redis.port)
  const cutOff = await start(t, proxy.port)
  for (const id of ['both', 'older']) t.equal((await cutOff.put(`/access/${id}`, DENY)).status, 201)
  const reconnect = hold(proxy)
  await direct.flushdb()
  const fresh = await start(t, redis.port)
  t.same(await fresh.ids(), [], 'it cannot know what is lost')
  t.equal((await fresh.put('/access/both', { ...DENY, why: 'It scrapes again.' })).status, 201)
  t.equal((await fresh.put('/access/newer', DENY)).status, 201)
  reconnect()
  for (const gateway of [fresh, cutOff])
    await waitUntil('all are there', async () => (await gateway.ids()).length === 3)
  t.same(await cutOff.ids(), ['both', 'newer', 'older'])
  t.match(await cutOff.entries(), [{ why: 'It scrapes again.' }, {}, {}], 'the later one is in force')
})

t.test('what Redis lost is made again, while others go on from what it had', async t => {
  if (!redisCommand(t)) return
  const { redis, direct } = await redisToLose(t)
  const [proxy, another] = [await steppingProxy(t, redis.port), await steppingProxy(t, redis.port)]
  const one = await start(t, proxy.port)
  const other = await start(t, another.port)
  for (const id of ['gone', 'kept', 'theirs']) t.equal((await one.put(`/access/${id}`, DENY)).status, 201)
  t.equal((await other.ids()).length, 3)
  const releaseOther = hold(another)
  // A replica that takes over may lack the last changes.
  const old = await direct.dumpBuffer(KEY)
  const mine = { ...DENY, why: 'Mine.' }
  for (const id of ['kept', 'theirs', 'new']) await one.put(`/access/${id}`, mine)
  t.equal((await one.remove('gone')).status, 200)
  const releaseOne = hold(proxy)
  await direct.restore(KEY, 0, old ?? '', 'REPLACE')
  releaseOther()
  await waitUntil('it is there again', async () => {
    return (await other.put('/access/theirs', { ...DENY, why: 'Theirs.' })).status === 200
  })
  t.equal((await other.put('/access/later', DENY)).status, 201)
  releaseOne()
  const wanted = [
    { id: 'kept', why: 'Mine.' },
    { id: 'later' },
    { id: 'new', why: 'Mine.' },
    { id: 'theirs', why: 'Theirs.' },
  ]
  for (const gateway of [one, other]) {
    await waitUntil(
      'all agree',
      async () => (await gateway.ids()).join() === wanted.map(({ id }) => id).join(),
    )
    t.match(await gateway.entries(), wanted)
  }
})

t.test('a mode is judged by what another admin port has just set', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const one = await start(t, redis.port)
  const other = await start(t, redis.port)
  t.equal((await other.put('/access/scraper', DENY)).status, 201)
  const answer = await one.put('/rules/scraper/mode', { mode: 'report-only', why: 'Try' })
  t.equal(answer.status, 409, 'at once, not only after the next look')
  t.match(answer.json().detail, '"scraper" was set by the admin API: change it by PUT /access/scraper.')
})
