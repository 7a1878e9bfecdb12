/** Lifetime windows and credit, through the whole gateway. */
import { writeFileSync } from 'node:fs'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { type TestGateway, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../helpers/redis.js'
import { twoWorkers } from '../helpers/two-workers.js'
import { waitUntil } from '../helpers/wait.js'

const policies = (quota = 'windows: [{ name: prepaid, requests: 0, per: lifetime }]', mode = 'enforce') => ({
  'limits.yaml': `version: 1
kind: project-limits
mode: ${mode}
buckets: { tokens: [POST /tokens, { pattern: POST /five, cost: 5 }], rest: ["*"] }
limits: [{ for: [{}], quotas: { tokens: { ${quota} }, rest: { sustained: 1000 } } }]
`,
})

interface Place {
  readonly url: string
  readonly adminUrl: string
}

const post = ({ url }: Place, path = '/tokens') =>
  send(url + path, { method: 'POST', headers: { host: 'acme.localhost' } })

const body = { bucket: 'tokens', window: 'prepaid', amount: 3, why: 'Invoice 7', by: 'dana' }

const credit = ({ adminUrl }: Place, more: object = {}, id?: string) =>
  send(`${adminUrl}/projects/acme/credit`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(id && { 'idempotency-key': id }) },
    body: JSON.stringify({ ...body, ...more }),
  })

const listed = async ({ adminUrl }: Place) => (await send(`${adminUrl}/projects/acme/credit`)).json<Listed>()

interface Listed {
  readonly windows: readonly { readonly quota: number; readonly used: number; readonly left: number }[]
  readonly credits: readonly Record<string, unknown>[]
}

async function start(t: Test, settings = '', files = policies()) {
  const upstream = await startApp(t, (req, res) => void req.resume().on('end', () => res.end('ok')))
  return testGateway(t, { upstream, policies: files, settings })
}

/** How many of `times` requests at once are admitted. */
async function admitted(places: readonly Place[], times: number, path?: string): Promise<number> {
  const all = Array.from({ length: times }, (_, i) => post(places[i % places.length] as Place, path))
  return (await Promise.all(all)).filter(({ status }) => status === 200).length
}

t.test('a refusal says that the credit is used up, and no time at which to come back', async t => {
  const gateway = await start(t)
  const first = await post(gateway)
  t.equal(first.status, 429)
  t.match(first.json(), {
    code: 'quota-exceeded',
    detail:
      'The credit of bucket tokens is used up. It admits more once it gets new credit; waiting does not help.',
    'violated-policies': ['tokens.prepaid'],
  })
  t.notOk('retry_after' in first.json<object>())
  t.notOk('retry-after' in first.headers)
  t.equal((await credit(gateway)).status, 201)
  const second = await post(gateway)
  t.match(second.headers, {
    'ratelimit-policy': '"tokens.prepaid";q=3',
    ratelimit: '"tokens.prepaid";r=2',
    'x-ratelimit-limit': '3',
    'x-ratelimit-remaining': '2',
  })
  t.notOk('x-ratelimit-reset' in second.headers)
  t.equal(await admitted([gateway], 5), 2)
  t.match((await post(gateway)).json(), {
    detail:
      'Bucket tokens admits 3 requests in all, and its credit is used up. It admits more once it gets new credit; waiting does not help.',
  })
  t.match((await post(gateway, '/five')).json(), { detail: /this one counts as 5, and fewer are left/ })
})

t.test('beside other windows, only those have a time at which they reset', async t => {
  const quota = 'sustained: 6, windows: [{ name: prepaid, requests: 8, per: lifetime }]'
  const gateway = await start(t, '', policies(quota))
  t.match((await post(gateway)).headers, {
    'ratelimit-policy': '"tokens.sustained";q=6;w=60, "tokens.prepaid";q=8',
    ratelimit: /^"tokens\.sustained";r=5;t=60, "tokens\.prepaid";r=7$/,
    'x-ratelimit-limit': '6, 6;w=60',
  })
  const minute = await post(gateway, '/five').then(() => post(gateway))
  t.match(minute.headers, { 'retry-after': /^\d+$/, ratelimit: /"tokens\.prepaid";r=2$/ })
  const both = await post(gateway, '/five')
  t.notOk('retry-after' in both.headers, 'no time helps against the lifetime window')
  t.same(both.json<{ 'violated-policies': string[] }>()['violated-policies'], [
    'tokens.sustained',
    'tokens.prepaid',
  ])
})

t.test(
  'credit is logged and listed with its reason, and impossible credit is refused in a sentence',
  async t => {
    const gateway = await start(t)
    t.match((await credit(gateway, { by: undefined })).json(), {
      amount: 3,
      credit: 3,
      by: '127.0.0.1',
      repeated: false,
    })
    t.match((await credit(gateway, { amount: 4, why: 'Invoice 8' })).json(), {
      credit: 7,
      by: 'dana',
      why: 'Invoice 8',
    })
    await post(gateway)
    t.match(await listed(gateway), {
      project: 'acme',
      windows: [
        { bucket: 'tokens', window: 'prepaid', quota: 7, credit: 7, used: 1, left: 6, store: 'memory' },
      ],
      credits: [
        { amount: 4, why: 'Invoice 8', credit: 7 },
        { amount: 3, why: 'Invoice 7', credit: 3 },
      ],
    })
    t.match(
      gateway.lines.filter(({ audit }) => audit === 'credit-added'),
      [
        { project: 'acme', amount: 3 },
        { amount: 4, by: 'dana', why: 'Invoice 8', credit: 7 },
      ],
    )
    const refusals: [object, number, RegExp][] = [
      [{ amount: 0 }, 422, /The amount is 0/],
      [{ amount: 1.5 }, 400, /"amount" in the body must be integer/],
      [{ amount: '5' }, 400, /"amount" in the body must be integer/],
      [{ amount: 2 ** 53 }, 400, /"amount" in the body must be <= 9007199254740991/],
      [
        { amount: 2 ** 53 - 1 },
        422,
        /"tokens.prepaid" would be too large: it is 7, and can be 999999999999999 at most/,
      ],
      [{ amount: -8 }, 422, /8 cannot be taken back: "tokens.prepaid" has a credit of 7/],
      [{ bucket: 'token' }, 422, /Did you mean "tokens"/],
      [
        { window: 'paid' },
        422,
        /"tokens.paid" is no lifetime window: those of project "acme" are "tokens.prepaid"/,
      ],
      [{ bucket: 'rest', window: 'sustained' }, 422, /"rest.sustained" is no lifetime window/],
      [{ why: ' ' }, 400, /"why" in the body may not be blank/],
      [{ until: '2030-01-01' }, 400, /"until" is unknown in the body/],
    ]
    for (const [change, status, sentence] of refusals) {
      const answer = await credit(gateway, change)
      t.equal(answer.status, status, JSON.stringify(change))
      t.match(answer.json<{ detail: string }>().detail, sentence)
    }
    const elsewhere = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    t.match((await send(`${gateway.adminUrl}/projects/acm/credit`, elsewhere)).json(), {
      status: 422,
      detail: /acme/,
    })
    t.equal((await send(`${gateway.adminUrl}/projects/acm/credit`)).status, 404)
    t.match((await credit(gateway, { amount: -6 })).json(), { credit: 1 })
    t.equal(await admitted([gateway], 3), 0, 'one of one is spent')
  },
)

t.test('the answer to a credit is its entry, whatever takes the requests', async t => {
  const gateway = await start(t)
  const { at, ...entry } = (await credit(gateway)).json<{ at: string }>()
  t.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000)
  t.same(entry, { project: 'acme', ...body, credit: 3, repeated: false })
})

t.test('the same Idempotency-Key adds once, and another credit with it is refused', async t => {
  const gateway = await start(t)
  const answers = await Promise.all(Array.from({ length: 8 }, () => credit(gateway, {}, 'payment 7')))
  t.same(answers.map(({ status }) => status).sort(), [...Array(7).fill(200), 201])
  t.match((await credit(gateway, { amount: 4 }, 'payment 7')).json(), {
    status: 422,
    detail: /This Idempotency-Key was used for another credit: 3 for "tokens.prepaid"/,
  })
  t.equal(await admitted([gateway], 9), 3)
})

t.test(
  'credit and what was spent survive a reload, an edited quota, a mode and a reset as they should',
  async t => {
    const gateway = await start(t)
    await credit(gateway, { amount: 5 })
    t.equal(await admitted([gateway], 4), 4)
    const write = async (quota: string, mode = 'enforce') => {
      writeFileSync(`${gateway.folder}/policies/limits.yaml`, policies(quota, mode)['limits.yaml'])
      t.equal((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).status, 200)
    }
    await write('windows: [{ name: prepaid, requests: 2, per: lifetime }]')
    t.equal(await admitted([gateway], 9), 3, 'one of the credit and two of the quota')
    await write('sustained: 100')
    t.equal(await admitted([gateway], 3), 3)
    await write('windows: [{ name: prepaid, requests: 0, per: lifetime }]', 'report-only')
    t.equal(await admitted([gateway], 3), 3)
    await write('windows: [{ name: prepaid, requests: 4, per: lifetime }]')
    t.equal(await admitted([gateway], 9), 2, 'nine in all are spent')
    const path = '/counters/tokens?project=acme&why=Mistake&by=dana'
    t.equal((await send(gateway.adminUrl + path, { method: 'DELETE' })).status, 200)
    t.match((await listed(gateway)).windows, [{ quota: 9, credit: 5, used: 0, left: 9 }])
    t.equal(await admitted([gateway], 20), 9, 'a reset gives back what was spent, and keeps the credit')
  },
)

t.test('without Redis the gateway warns that credit ends with the process', async t => {
  const gateway = await start(t)
  t.match(
    gateway.lines.filter(({ msg }) => String(msg).startsWith('Without Redis, lifetime windows')),
    [{ buckets: ['tokens'] }],
  )
})

t.test('two gateways on one Redis never admit more than quota and credit, and all of it', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const settings = `redis: ${redis}\nstore: { deadline: 5s }`
  const quota = policies('windows: [{ name: prepaid, requests: 40, per: lifetime }]')
  const gateways = [await start(t, settings, quota), await start(t, settings, quota)] as const
  let [all, spent] = [40, 0]
  const step = fc.record({
    times: fc.integer({ min: 1, max: 60 }),
    credit: fc.integer({ min: 0, max: 40 }),
    five: fc.boolean(),
  })
  const steps = fc.array(step, { minLength: 2, maxLength: 4 })
  const property = fc.asyncProperty(steps, async steps => {
    for (const { times, credit: amount, five } of steps) {
      const adding = amount === 0 ? undefined : credit(gateways[1], { amount })
      const count = await admitted(gateways, times, five ? '/five' : '/tokens')
      t.ok([undefined, 201].includes((await adding)?.status))
      all += amount
      spent += count * (five ? 5 : 1)
      if (spent > all) return false
    }
    // A gateway may refuse from memory for a second.
    await waitUntil('all of it to be spent', async () => {
      spent += await admitted(gateways, 20)
      return spent >= all
    })
    return spent === all && (await admitted(gateways, 10)) === 0
  })
  await fc.assert(property, { numRuns: 4 })
  t.match((await listed(gateways[0])).windows, [{ quota: all, used: all, left: 0, store: 'redis' }])
})

t.test('the gateway that is given credit admits at once, another within a second or so', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const settings = `redis: ${redis}\nstore: { deadline: 5s }`
  const [one, other] = [await start(t, settings), await start(t, settings)]
  t.equal(await admitted([one, other], 6), 0)
  const since = performance.now()
  await credit(one, { amount: 4 })
  t.equal(await admitted([one], 2), 2)
  await waitUntil('the other admits', async () => (await admitted([other], 1)) === 1)
  t.ok(performance.now() - since < 2500)
})

t.test('all workers admit at once when credit was added', async t => {
  const gateway = await twoWorkers(t, policies())
  if (gateway === undefined) return
  for (let i = 0; i < 6; i += 1) t.equal((await post(gateway)).status, 429)
  t.equal((await credit(gateway, { amount: 30 })).status, 201)
  t.equal(await admitted([gateway], 20), 20)
  t.match(await listed(gateway), { windows: [{ left: 10 }], credits: [{ amount: 30 }] })
})

const says = ({ lines }: TestGateway, text: string): boolean =>
  lines.some(({ msg }) => String(msg).startsWith(text))

t.test('while Redis is away, no more is spent than was left, and Redis hears of it', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const settings = `redis: ${redis.url}\nstore: { deadline: 500ms, instances: 2 }`
  const gateway = await start(t, settings)
  const stranger = await start(t, settings)
  await credit(gateway, { amount: 21 })
  t.equal(await admitted([gateway], 1), 1)
  redis.pause()
  t.match((await credit(gateway)).json(), { status: 503, detail: /may or may not have been added/ })
  await waitUntil('Redis to be away', () => says(gateway, 'Redis is away'))
  const here = await admitted([gateway], 30)
  t.ok(here <= 10, `${here}: at most this gateway's half of what was left`)
  t.equal(await admitted([stranger], 5), 0, 'a gateway that has no answer of Redis yet admits nothing')
  redis.resume()
  await waitUntil('Redis to be back', () => [gateway, stranger].every(one => says(one, 'Redis is back')))
  await waitUntil('the rest to be spent', async () => {
    await admitted([gateway, stranger], 30)
    const [window] = (await listed(gateway)).windows
    return window?.left === 0 && window.used === window.quota
  })
})
