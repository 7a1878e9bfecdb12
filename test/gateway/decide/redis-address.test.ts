/** Redis addresses: what the configuration accepts is what the gateway can connect to. */
import t from 'tap'
import { isRedisUrl } from '../../../config/formats.js'
import { redisAddress, shownAddress } from '../../../gateway/decide/redis/address.js'
import { hashSlot } from '../../../gateway/decide/redis/hash-slot.js'

t.test('an address names one server, a Cluster, or Sentinels with the name of their master', async t => {
  const read = (text: string) => {
    t.ok(isRedisUrl(text), text)
    return redisAddress(text)
  }
  t.match(read('rediss://:secret@redis.example:6380/3'), {
    kind: 'server',
    url: 'rediss://:secret@redis.example:6380/3',
  })
  t.strictSame(read('redis+cluster://a.example,10.0.0.2:7001,[2001:db8::1]:7002/'), {
    kind: 'cluster',
    nodes: [
      { host: 'a.example', port: 6379 },
      { host: '10.0.0.2', port: 7001 },
      { host: '2001:db8::1', port: 7002 },
    ],
    tls: false,
    username: undefined,
    password: undefined,
  })
  t.strictSame(read('rediss+sentinel://gate%40way:p%3A%2F%2Cw:x@s1:26379,s2/my-master'), {
    kind: 'sentinel',
    sentinels: [
      { host: 's1', port: 26379 },
      { host: 's2', port: 26379 },
    ],
    master: 'my-master',
    tls: true,
    username: 'gate@way',
    password: 'p:/,w:x',
  })
})

t.test('logs show an address without user, password or options', async t => {
  t.equal(
    shownAddress('redis://user:p@ss/word@redis.example:6380/3?password=x'),
    'redis://redis.example:6380/3',
  )
  t.equal(
    shownAddress('rediss+sentinel://gate:way@s1:26379,s2/my-master'),
    'rediss+sentinel://s1:26379,s2/my-master',
  )
  t.equal(shownAddress('redis://127.0.0.1'), 'redis://127.0.0.1')
})

t.test('an address that cannot be connected to is refused', async t => {
  for (const text of [
    'localhost:6379',
    'http://localhost',
    'redis://',
    'redis+cluster://',
    'redis+cluster://a,,b',
    'redis+cluster://a:port',
    'redis+cluster://a,b/0',
    'redis+cluster://a b',
    'redis+cluster://%ff@a',
    'redis+sentinel://a:26379',
    'redis+sentinel://a/b/c',
    'redis+sentinel://a/my master',
    'redis+replica://a',
  ]) {
    t.notOk(isRedisUrl(text), text)
  }
  t.ok(isRedisUrl(''), 'an empty address is allowed')
})

t.test('keys have the hash slots of the Cluster specification', async t => {
  t.equal(hashSlot('123456789'), 0x31c3)
  t.equal(hashSlot('sluice:1:{user1000}:e:x'), hashSlot('{user1000}.followers'))
  t.equal(hashSlot('foo{}{bar}'), 8363, 'an empty hash tag does not count')
  t.equal(hashSlot('foo{{bar}}zap'), hashSlot('{bar'))
})
