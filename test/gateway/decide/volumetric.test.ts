/** Volumetric rules as a client experiences them: a whole gateway, on each counter store. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { Received } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { onEachStore, redisSettings, type TestedStore } from '../../helpers/stores.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { LIMITS, rulesOf, start } from './volumes.js'

const TRUSTED = 'trustedProxies: [127.0.0.1]'

// The tests mostly wait, so they run at the same time.
t.jobs = 4

/** Each gateway has its own counters. */
const startWith = async (t: Test, store: TestedStore, more: string, policies: Record<string, string>) =>
  start(t, `${await store.settings(t)}\n${more}`, policies)
const begin = (t: Test, store: TestedStore, more: string, ...rules: string[]) =>
  startWith(t, store, more, { 'volumetric.yaml': rulesOf(...rules) })

onEachStore(
  t,
  'a client over its quota gets 429 without numbers until its block has ended',
  async (t, store) => {
    const rule = 'id: flood, match: [POST /self-service/**], key: [client-ip], mode: enforce'
    const here = await begin(t, store, '', `${rule}, quota: { requests: 3, per: 2s }, blockFor: 5s`)
    t.strictSame(await here.statuses(3, '/self-service/login'), [200, 200, 200])
    const refused = await here.post('/self-service/registration', { origin: 'https://app.example' })
    t.equal(refused.status, 429, 'all paths of the rule share one counter')
    t.match(refused.headers, {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'retry-after': '5',
      'access-control-allow-origin': 'https://app.example',
    })
    t.same(
      Object.keys(refused.headers).filter(field => field.includes('ratelimit')),
      [],
    )
    const { instance, retry_after, ...body } = refused.json()
    t.strictSame(body, {
      type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
      title: 'Abnormal usage detected',
      status: 429,
      detail: 'Rule flood has seen too many requests from this source. Try again in 5 s.',
      code: 'abnormal-usage',
      'violated-policies': ['flood'],
    })
    t.equal(retry_after, 5)
    t.equal(here.passed(), 3, 'no refused request reaches the upstream')
    await sleep(2200)
    t.equal((await here.post('/self-service/login')).status, 429, 'the window has ended, but not the block')
    await sleep(2850)
    t.equal((await here.post('/self-service/login')).status, 200, 'a client that waits as told is admitted')
    t.match(here.lines.filter(line => line.decision === 'deny')[0], {
      rule: 'flood',
      kind: 'volumetric',
      route: 'POST /self-service/**',
      ip: '127.0.0.0/24',
      ja4: null,
      auth: 'anonymous',
      counters: [{ policy: 'flood', q: 3, used: 4, t_ms: Number }],
      would_status: 429,
      sent_status: 429,
      store: store.recorded,
    })
  },
)

onEachStore(
  t,
  'addresses are counted by network, and only those from trusted hops are believed',
  async (t, store) => {
    const rule =
      'id: by-ip, match: [POST /x], key: [client-ip], quota: { requests: 2, per: 1m }, mode: enforce'
    const here = await begin(t, store, TRUSTED, rule)
    const from = async (...addresses: string[]) => {
      const seen: number[] = []
      for (const address of addresses) {
        seen.push((await here.post('/x', { 'x-forwarded-for': address })).status)
      }
      return seen
    }
    t.strictSame(await from('2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:2:3::3'), [200, 200, 429])
    t.strictSame(await from('2001:db8:1:3::1'), [200], 'another /64 has its own counter')
    t.strictSame(await from('::ffff:192.0.2.1', '::ffff:c000:201', '192.0.2.1'), [200, 200, 429])
    t.strictSame(
      await from('2001:db8::192.0.2.1'),
      [200],
      'an IPv6 address that ends like an IPv4 address has its own counter',
    )
    t.strictSame(
      await from('1.1.1.1, 192.0.2.9', 'evil, 192.0.2.9', '192.0.2.9'),
      [200, 200, 429],
      'addresses further left change nothing',
    )
    t.strictSame(
      await from('a', 'b, c', '2001:db8:1:2::1, garbage'),
      [200, 200, 429],
      'invalid fields count for the peer itself',
    )
  },
)

onEachStore(
  t,
  'a TLS fingerprint counts only from a trusted hop, and "missing" decides what happens without one',
  async (t, store) => {
    const by = (part: string, missing: string) =>
      `id: by-${part}-${missing}, match: [POST /${part}/${missing}], key: [${part}], missing: ${missing}, quota: { requests: 1, per: 1m }, mode: enforce`
    const rules = [by('ja3', 'skip'), by('ja4', 'skip'), by('ja4', 'shared'), by('ja4', 'deny')]
    const behind = await begin(t, store, TRUSTED, ...rules)
    const ja4 = (value: string) => ({ 'x-ja4-fingerprint': value })
    const known = ja4('t13d1516h2_8daaf6152771_b186095e22b6')
    t.strictSame(await behind.statuses(2, '/ja4/skip', known), [200, 429])
    t.strictSame(await behind.statuses(2, '/ja3/skip', known), [200, 200], 'a JA4 is not taken for a JA3')
    t.strictSame(
      await behind.statuses(2, '/ja3/skip', { 'x-ja3-fingerprint': 'e7d705a3286e19ea42f587b344ee6865' }),
      [200, 429],
    )
    t.strictSame(await behind.statuses(1, '/ja4/skip', ja4('t13d0000h2_000000000000_000000000000')), [200])
    t.strictSame(await behind.statuses(2, '/ja4/skip'), [200, 200], 'skip does not count them')
    t.strictSame(
      await behind.statuses(2, '/ja4/shared'),
      [200, 429],
      'shared counts all without a fingerprint together',
    )
    t.strictSame(await behind.statuses(1, '/ja4/shared', known), [200])
    const denied = await behind.post('/ja4/deny')
    t.equal(denied.status, 429)
    t.match(denied.json(), {
      detail: 'Rule by-ja4-deny counts by something that this request lacks.',
      'violated-policies': ['by-ja4-deny'],
    })
    t.notOk('retry-after' in denied.headers, 'there is no retry-after, because waiting would not help')

    const direct = await begin(t, store, '', ...rules)
    t.strictSame(
      await direct.statuses(2, '/ja4/skip', known),
      [200, 200],
      'a fingerprint from the client itself does not count',
    )
    t.strictSame(await direct.statuses(2, '/ja4/shared', known), [200, 429])
  },
)

onEachStore(
  t,
  'a key can be made of a header, credentials and the method, alone or together',
  async (t, store) => {
    const quota = 'quota: { requests: 1, per: 1m }, mode: enforce'
    const here = await begin(
      t,
      store,
      TRUSTED,
      `id: by-header, match: [POST /device], key: ["header:x-device", client-ip], missing: skip, ${quota}`,
      `id: by-auth, match: [/auth], key: [auth, method], ${quota}`,
      `id: anonymous, match: [POST /when], key: [client-ip], when: { authenticated: false }, ${quota}`,
      `id: by-project, match: [POST /project/*], key: [project, path], ${quota}`,
    )
    const device = (value: string, address = '192.0.2.1') => ({
      'x-device': value,
      'x-forwarded-for': address,
    })
    t.strictSame(await here.statuses(2, '/device', device('a')), [200, 429])
    t.strictSame(await here.statuses(1, '/device', device('b')), [200])
    t.strictSame(await here.statuses(1, '/device', device('a', '192.0.2.2')), [200])
    t.strictSame(
      await here.statuses(2, '/device', device('')),
      [200, 200],
      'an empty value counts as missing',
    )
    t.strictSame(
      await here.statuses(2, '/device', device('a, b')),
      [200, 429],
      'two values count as one text',
    )
    const long = device('x'.repeat(10_000))
    t.strictSame(await here.statuses(2, '/device', long), [200, 429])
    const bearer = { authorization: 'Bearer x' }
    t.strictSame(await here.statuses(2, '/auth'), [200, 429])
    t.strictSame(await here.statuses(2, '/auth', bearer), [200, 429])
    t.equal((await here.post('/auth', bearer, { method: 'PUT' })).status, 200)
    t.strictSame(await here.statuses(2, '/when'), [200, 429])
    t.strictSame(
      await here.statuses(2, '/when', bearer),
      [200, 200],
      'the rule does not apply to authenticated requests',
    )
    t.strictSame(await here.statuses(1, '/project/1'), [200])
    t.strictSame(await here.statuses(1, '/project/2'), [429], 'all paths of one pattern share a counter')
    t.strictSame(await here.statuses(1, '/project/1', { host: 'dev.localhost' }), [200])
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      t.equal((await here.post('/auth', {}, { method })).status, 200, `${method} is exempt`)
    }
  },
)

onEachStore(t, 'a request one rule refuses is charged to no other rule', async (t, store) => {
  const rule =
    'id: by-ip, match: [POST /**], key: [client-ip], quota: { requests: 5, per: 1m }, mode: enforce'
  const here = await startWith(t, store, TRUSTED, {
    'volumetric.yaml': rulesOf(rule),
    'limits.yaml': LIMITS,
  })
  t.strictSame(await here.statuses(12, '/scarce'), [200, 200, ...Array(10).fill(429)])
  t.strictSame(
    await here.statuses(4, '/else'),
    [200, 200, 200, 429],
    'two of the earlier requests were admitted',
  )
  const other = await here.post('/else', { 'x-forwarded-for': '192.0.2.1' })
  t.equal(other.headers['x-ratelimit-remaining'], '16', 'the project was charged only for admitted requests')
  t.notMatch(other.headers['ratelimit-policy'], /by-ip/, 'only the project’s own limits are shown')
})

onEachStore(
  t,
  'report-only rules record what they would refuse, and change no response',
  async (t, store) => {
    const observed = [
      'id: one, match: [POST /**], key: [client-ip], quota: { requests: 1, per: 1m }, blockFor: 1h',
      'id: none, match: [/x/**], key: [ja4], missing: deny, quota: { requests: 1, per: 1m }',
      'id: few, match: [PUT /**, POST /x/*], key: [method, "header:x-device"], missing: shared, quota: { requests: 2, per: 1s }, onStoreError: closed',
    ].map(rule => `${rule}, mode: report-only`)
    const enforced =
      'id: hard, match: [POST /x/**], key: [client-ip], quota: { requests: 9, per: 1m }, mode: enforce'
    const request = fc.record({
      path: fc.constantFrom('/scarce', '/x/1', '/x/2', '/y'),
      method: fc.constantFrom('POST', 'PUT', 'GET'),
      device: fc.constantFrom('', 'a', 'b'),
    })
    const [traffic = []] = fc.sample(fc.array(request, { minLength: 40, maxLength: 40 }), { numRuns: 1 })
    const answersWith = async (...rules: string[]) => {
      const policies = { 'volumetric.yaml': rulesOf(...rules), 'limits.yaml': LIMITS }
      const here = await startWith(t, store, '', policies)
      const answers: unknown[] = []
      for (const { path, method, device } of traffic) {
        const { status, headers, body } = await here.post(path, { 'x-device': device }, { method })
        answers.push(comparable(status, headers, body))
      }
      return { answers, ...here }
    }
    const plain = await answersWith(enforced)
    const watched = await answersWith(...observed, enforced)
    t.strictSame(watched.answers, plain.answers, JSON.stringify(traffic))
    const recordsOfOne = () =>
      watched.lines.filter(({ decision, rule }) => decision === 'would_deny' && rule === 'one')
    const writes = traffic.filter(({ method }) => method === 'POST')
    const expected = Math.max(0, writes.length - 1)
    await waitUntil('the records', () => recordsOfOne().length >= expected)
    t.equal(recordsOfOne().length, expected)
    t.match(recordsOfOne()[0], {
      mode: 'report-only',
      counters: [{ policy: 'one', q: 1, used: 2, t_ms: Number }],
      ip: '127.0.0.0/24',
      ja4: null,
      would_status: 429,
    })
  },
)

onEachStore(t, 'an edited rule applies at once and keeps what was spent', async (t, store) => {
  const rule = (quota: string) =>
    rulesOf(`id: live, match: [POST /x], key: [client-ip], quota: ${quota}, mode: enforce`)
  const here = await startWith(t, store, '', { 'volumetric.yaml': rule('{ requests: 2, per: 1m }') })
  const edit = async (text: string) => {
    writeFileSync(join(here.folder, 'policies', 'volumetric.yaml'), text)
    t.match(await here.reloader.reload('admin'), { result: 'loaded' })
  }
  t.strictSame(await here.statuses(3, '/x'), [200, 200, 429])
  await edit(rule('{ requests: 5, per: 1m }'))
  t.strictSame(await here.statuses(3, '/x'), [200, 200, 429], 'the earlier requests still count')
  await edit(rule('{ requests: 4, per: 1s }'))
  const refused = await here.post('/x')
  t.strictSame(
    [refused.status, refused.headers['retry-after']],
    [429, '1'],
    'the block is no longer than the new window',
  )
  await sleep(1050)
  t.equal((await here.post('/x')).status, 200)
})

/** A response without what differs between requests: times, what is left of a second, and the request's id. */
function comparable(status: number, headers: Received['headers'], body: string) {
  const { date: _date, 'x-request-id': _id, ...fields } = headers
  const timeless = JSON.stringify(fields).replace(
    /(\.burst\\";r=|;t=|reset":"|retry-after":"|content-length":")\d+/g,
    '$1',
  )
  return [status, timeless, body.replace(/urn:uuid:[\w-]+|in [^."]+|"retry_after":\d+/g, '')]
}

t.test('counters in Redis have unforgeable names and always expire, separately for each mode', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const rule = (id: string, mode: string) =>
    `id: ${id}, match: [POST /x], key: ["header:x-device"], missing: skip, quota: { requests: 2, per: 20s }, mode: ${mode}`
  const here = await start(t, redisSettings(url), {
    'volumetric.yaml': rulesOf(rule('hard', 'enforce'), rule('soft', 'report-only')),
  })
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  for (const device of ['a', 'a}:e', '{a', 'a:b', '1:a', 'x'.repeat(10_000)]) {
    t.strictSame(await here.statuses(2, '/x', { 'x-device': device }), [200, 200], device.slice(0, 10))
  }
  const keys = await redis.keys('sluice:*volumetric*')
  t.equal(keys.length, 12, 'no two values share a counter')
  t.ok(keys.every(key => key.length < 300))
  t.same(keys.filter(key => key.endsWith(':e')).length, 6)
  t.notOk(
    keys.some(key => key.includes('xxx')),
    'no value appears in clear in Redis',
  )
  const counter = `sluice:1:*:{volumetric:hard:43:${createHash('sha256').update('header:x-device:a').digest('base64url')}}:e`
  t.ok(keys.includes(counter))
  t.ok((await Promise.all(keys.map(key => redis.pttl(key)))).every(ttl => ttl > 0 && ttl <= 20_000))

  await redis.persist(counter)
  await redis.script('FLUSH')
  t.strictSame(
    await here.statuses(1, '/x', { 'x-device': 'a' }),
    [429],
    'a counter without an expiry still refuses',
  )
  const left = await redis.pttl(counter)
  t.ok(left > 0 && left <= 20_000, 'a counter without an expiry gets one within a window')
})
