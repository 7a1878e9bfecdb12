/** Claims of notifications, in Redis and without it. */
import { Redis } from 'ioredis'
import t from 'tap'
import { KEY_SPACE } from '../../../gateway/decide/redis/key-space.js'
import { SideConnection } from '../../../gateway/decide/redis/side-connection.js'
import { Claims } from '../../../gateway/notify/claims.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const HOUR_MS = 3_600_000

t.test('of all gateways the first that claims has it, until the claim ends', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const connections = [new SideConnection(redis, log), new SideConnection(redis, log)]
  t.teardown(() => connections.map(each => each.close()))
  const [one, other] = connections.map(each => new Claims(each, log)) as [Claims, Claims]
  const won = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 ? one : other).claim('a', HOUR_MS)),
  )
  t.equal(won.filter(isFirst => isFirst).length, 1)
  t.equal(await other.claim('b', HOUR_MS), true, 'another name is another claim')

  const client = new Redis(redis)
  t.teardown(() => client.disconnect())
  const keys = await client.keys('*')
  t.equal(keys.length, 2)
  for (const key of keys) {
    t.ok(key.startsWith(KEY_SPACE))
    t.ok((await client.pttl(key)) > HOUR_MS / 2, 'it ends by itself')
  }

  one.shorten('a', 20)
  await waitUntil('the claim to end', async () => (await client.keys('*')).length === 1)
  t.equal(await other.claim('a', HOUR_MS), true)
})

t.test('while Redis is away a process remembers what it has claimed', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const connection = new SideConnection(redis.url, log)
  t.teardown(() => connection.close())
  const claims = new Claims(connection, log)
  t.equal(await claims.claim('before', HOUR_MS), true)
  redis.pause()
  t.same(await Promise.all(['before', 'new', 'new'].map(name => claims.claim(name, HOUR_MS))), [
    false,
    true,
    false,
  ])
  redis.resume()
})

t.test('without Redis a claim ends with its time', async t => {
  const claims = new Claims(undefined, log)
  t.equal(await claims.claim('a', HOUR_MS), true)
  t.equal(await claims.claim('a', HOUR_MS), false)
  claims.shorten('a', 10)
  await waitUntil('the claim to end', () => claims.claim('a', 1))
})
