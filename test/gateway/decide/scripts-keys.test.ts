/** What our scripts may rely on in every store: each key that they use is declared, and `unpack` stays small. */
import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Ask } from '../../../gateway/decide/store/store.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'
import { addCredit, prepaid, windows } from './counting.js'
import { meter, minute, storeOn } from './opened.js'

t.test('scripts use no key that they were not given', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const client = new Redis(url)
  const watched = await client.monitor()
  t.teardown(() => {
    client.disconnect()
    watched.disconnect()
  })
  const used: string[] = []
  let given = new Set<string>()
  const undeclared: string[] = []
  watched.on('monitor', (_time: string, args: string[], source: string) => {
    const command = args[0]?.toLowerCase()
    if (command === 'evalsha' || command === 'eval') given = new Set(args.slice(3, 3 + Number(args[2])))
    if (source !== 'lua' || command === 'time') return
    const key = args[1] as string
    used.push(key)
    if (!given.has(key)) undeclared.push(args.join(' '))
  })
  const { ask, store, credit } = await storeOn(t, url)
  const slots: Ask = { ...minute('{a}:s', 1), demand: { kind: 'slots', max: 2, ttlMs: 5000 } }
  const leased: Ask = {
    ...minute('{a}:l', 100),
    demand: { ...minute('{a}:l', 100).demand, lease: true } as Ask['demand'],
  }
  const asks = [minute('{a}:w', 3), windows('{a}:p', prepaid(3)), meter('{a}:m', 3), slots]
  for (let i = 0; i < 5; i += 1) {
    const answers = await ask(...asks)
    await ask(leased)
    await store.peek(asks)
    if (i === 1) store.giveBack(asks, answers)
  }
  await ask({ ...meter('{a}:r', 3), reserves: true })
  store.charge([{ ask: meter('{a}:m', 3), units: 1 }])
  await addCredit({ credit }, '{a}:p', 2, 'id')
  const all = [
    '{a}:w',
    '{a}:p',
    '{a}:credit:p',
    '{a}:credits',
    '{a}:credit-id:',
    '{a}:m',
    '{a}:s',
    '{a}:l',
    '{a}:r',
  ]
  await waitUntil('all to be seen', () => all.every(key => used.some(one => one.startsWith(key))))
  t.same(undeclared, [])
})

t.test('scripts unpack no more than the lists of one key', t => {
  const folder = new URL('../../../gateway/decide/redis/lua/', import.meta.url)
  for (const file of readdirSync(folder)) {
    const text = readFileSync(new URL(file, folder), 'utf8').replaceAll('cmsgpack.unpack', '')
    const unpacked = text.match(/(?<!\w)unpack\([^)]*\)/g) ?? []
    // One list for each window, of which there are at most eight, and what is lent.
    t.ok(
      unpacked.every(call => /^unpack\(lists\b/.test(call)),
      `${file}: ${unpacked.join(', ')}`,
    )
  }
  t.end()
})
