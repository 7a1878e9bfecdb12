/** Senders of wrong keys have to wait, in one process and in several. */
import { Redis } from 'ioredis'
import t from 'tap'
import { type Area, WrongKeys } from '../../../gateway/admin/wrong-keys.js'
import { KEY_SPACE } from '../../../gateway/decide/redis/key-space.js'
import { networkOf } from '../../../gateway/listen/client.js'
import { redisUrl } from '../../helpers/redis.js'

function throttle(connection?: object) {
  const lines: object[] = []
  const quiet = () => undefined
  const log = { debug: quiet, info: quiet, error: quiet, warn: (fields: object) => void lines.push(fields) }
  const redis = connection && { storeClient: connection, keyPrefix: `${KEY_SPACE}wrong-keys` }
  const wrongKeys = new WrongKeys({ redis, networkOf, log })
  const sent = async (area: Area, source: string, keys: readonly string[]) => {
    const waits: (number | undefined)[] = []
    for (const key of keys) waits.push(await wrongKeys.sent(area, source, key))
    return waits
  }
  return { wrongKeys, sent, lines }
}

const guesses = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `guess-${from + i}`)

t.test(
  'the twenty-first wrong key of a minute has to wait, and other addresses and areas do not',
  async t => {
    const { wrongKeys, sent, lines } = throttle()
    t.same(await sent('admin', '192.0.2.1', guesses(20)), Array(20).fill(undefined))
    const [wait, again] = await sent('admin', '192.0.2.1', ['another', 'one more'])
    t.ok(wait !== undefined && wait > 50 && wait <= 60, `${wait} s`)
    t.ok(again !== undefined)
    t.same(await sent('admin', '192.0.2.2', ['another']), [undefined], 'another address does not wait')
    t.same(await sent('scim', '192.0.2.1', ['another']), [undefined], 'another area does not wait')
    t.same(lines, [{ area: 'admin', source: '192.0.2.1' }], 'one line is logged')
    t.same(
      [...wrongKeys.counts()],
      [
        { area: 'admin', outcome: 'refused', times: 21 },
        { area: 'admin', outcome: 'throttled', times: 2 },
        { area: 'scim', outcome: 'refused', times: 1 },
      ],
    )
  },
)

t.test('addresses of one IPv6 network count as one source', async t => {
  const { sent } = throttle()
  for (let i = 0; i < 20; i += 1) await sent('identity', `2001:db8::${i + 1}`, [`guess-${i}`])
  t.not((await sent('identity', '2001:db8::ffff', ['another']))[0], undefined)
  t.equal((await sent('identity', '2001:db8:0:1::1', ['another']))[0], undefined)
})

t.test('a wrong key sent from many addresses has to wait too', async t => {
  const { sent } = throttle()
  for (let i = 0; i < 100; i += 1) await sent('scim', `198.51.${i}.1`, ['one and the same'])
  t.not((await sent('scim', '203.0.113.1', ['one and the same']))[0], undefined)
  t.equal((await sent('scim', '203.0.113.1', ['another']))[0], undefined)
})

t.test('gateways on one Redis count together, and each counts alone without it', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const [one, two] = [new Redis(url), new Redis(url)]
  t.teardown(() => [one, two].map(redis => redis.disconnect()))
  const [first, second] = [throttle(one), throttle(two)]
  const source = '192.0.2.77'
  await first.sent('management', source, guesses(12))
  t.same(await second.sent('management', source, guesses(8, 12)), Array(8).fill(undefined))
  t.not((await second.sent('management', source, ['another']))[0], undefined)
  t.not((await first.sent('management', source, ['one more']))[0], undefined)
  const keys = await one.keys('sluice:1:wrong-keys:management:*')
  t.ok(
    keys.length > 0 && keys.every(key => /:(?:source|key):[0-9a-f]{4}$/.test(key)),
    'keys in Redis reveal neither source nor key',
  )
  for (const key of keys) t.ok((await one.pttl(key)) > 0, 'keys in Redis expire')

  one.disconnect()
  const alone = await first.sent('management', '192.0.2.78', guesses(21))
  t.same(alone.slice(0, 20), Array(20).fill(undefined))
  t.not(alone[20], undefined)
})

t.test('a Redis that never responds delays nobody for long', async t => {
  const silent = { defineCommand() {}, rlflxIncr: () => new Promise(() => undefined) }
  const { sent } = throttle(silent)
  const since = performance.now()
  t.same(await sent('admin', '192.0.2.9', ['guess']), [undefined])
  t.ok(performance.now() - since < 2000)
})
