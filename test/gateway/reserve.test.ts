/** Reserve and settle, through the whole gateway: what is known only with the response never exceeds a window. */
import t from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { clusterUrl, redisCommand, startRedis } from '../helpers/redis.js'
import { waitUntil } from '../helpers/wait.js'
import { asking, leftAt, model, onRedis, type Place, policies, scene, settles } from './reserve-scene.js'

const PLACES: readonly Place[] = [
  { name: 'in process', open: async () => undefined, runs: 8 },
  { name: 'on two gateways and Redis', open: onRedis, runs: 3 },
  {
    name: 'on two gateways and a Cluster',
    runs: 1,
    open: async t => (await clusterUrl(t)) ?? null,
  },
  {
    name: 'on two gateways that lease tokens',
    runs: 2,
    open: onRedis,
    quota: 'lease: true, windows: [{ name: hour, requests: 10000, per: 1h }]',
  },
]
const [IN_PROCESS] = PLACES as [Place]

for (const place of PLACES) settles(t, place)

t.test('what was never sent costs nothing, nor does what has no number with unknown: free', async t => {
  asking.cost = 0
  const at = await scene(t, IN_PROCESS, 'free')
  for (const as of ['nothing', 'dies', 'cut', 'gzip']) await at?.chat(`tokens=5&as=${as}`).catch(() => {})
  await waitUntil('all to be given back', async () => (await at?.used())?.[0] === 0)

  asking.cost = 0
  const gone = await testGateway(t, { upstream: 'http://127.0.0.1:1', policies: policies() })
  const options = { method: 'POST', headers: { host: 'acme.localhost' } }
  for (let i = 0; i < 15; i += 1) t.equal((await send(`${gone.url}/chat`, options)).status, 502)
})

t.test('a settling that Redis cannot hear is told later', async t => {
  if (redisCommand(t) === undefined) return
  asking.cost = 0
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const upstream = await startApp(t, model)
  const settings = `retryJitter: 0%\nredis: ${redis.url}\nstore: { deadline: 250ms, onError: closed }`
  const { url } = await testGateway(t, { upstream, policies: policies(), settings })
  const chat = (query: string) =>
    send(`${url}/chat?${query}`, { method: 'POST', headers: { host: 'acme.localhost' } })
  await waitUntil('Redis to count', async () => (await chat('tokens=0')).status === 200)
  const both = [chat('tokens=300&ms=1500'), chat('tokens=1700&ms=1500')]
  await waitUntil('both to be under way', async () => (await leftAt(url)) === 8000 - asking.cost)
  redis.pause()
  await waitUntil('Redis to be away', async () => (await chat('tokens=0')).status === 503)
  for (const one of both) t.equal((await one).status, 200)
  redis.resume()
  await waitUntil('both to be settled', async () => (await leftAt(url)) === 8000 - asking.cost)
})
