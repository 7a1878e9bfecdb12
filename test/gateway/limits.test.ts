/** The limits that Sluice ships with, as clients experience them, on each counter store. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { type Sent, send, startApp } from '../helpers/http.js'
import { shipped } from '../helpers/policies.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { redisSettings, stores } from '../helpers/stores.js'
import { sleep, waitUntil } from '../helpers/wait.js'
import { WaitingApp } from '../helpers/waiting-app.js'

for (const store of stores) {
  t.test(`limits ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const start = async (t: Test, options: Partial<TestGatewayOptions> = {}) => {
      const work = new WaitingApp()
      const upstream = await startApp(t, work.handler)
      const more = [settings, options.settings].join('\n')
      const gateway = await testGateway(t, { policies: shipped, ...options, upstream, settings: more })
      const ask = (path: string, sent: Sent & { host?: string } = {}) =>
        send(gateway.url + path, {
          ...sent,
          headers: { host: sent.host ?? 'acme.localhost', ...sent.headers },
        })
      const records = (decision: string) => gateway.lines.filter(line => line.decision === decision)
      return { ...gateway, work, ask, records }
    }

    t.test('exactly 10 of 30 simultaneous requests pass a bucket of 10', async t => {
      const { ask, work } = await start(t, { projects: oneProject('burst') })
      const answers = await Promise.all(
        Array.from({ length: 30 }, () => ask('/sessions/whoami', { host: 'burst.localhost' })),
      )
      t.equal(answers.filter(({ status }) => status !== 429).length, 10)
      t.equal(work.started.length, 10, 'no refused request reaches the upstream')
    })

    t.test('responses carry both families of fields, and a refusal explains itself', async t => {
      const { ask, records } = await start(t, { projects: oneProject('fields') })
      const headers = { origin: 'https://app.example' }
      const admitted = await ask('/sessions/whoami', { host: 'fields.localhost', headers })
      t.equal(admitted.status, 200)
      t.match(admitted.headers, {
        'ratelimit-policy': '"sessions-whoami.burst";q=10;w=1, "sessions-whoami.sustained";q=300;w=60',
        ratelimit: /^"sessions-whoami.burst";r=9;t=1, "sessions-whoami.sustained";r=299;t=6[01]$/,
        'x-ratelimit-limit': '10, 10;w=1, 300;w=60',
        'x-ratelimit-remaining': '9',
        'x-ratelimit-reset': '1',
        'access-control-expose-headers': /RateLimit-Policy, .*Retry-After/,
      })
      const all = await Promise.all(
        Array.from({ length: 15 }, () => ask('/sessions/whoami', { host: 'fields.localhost', headers })),
      )
      const refused = all.find(({ status }) => status === 429)
      t.match(refused?.headers, {
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        'retry-after': /^[12]$/,
        ratelimit: /"sessions-whoami.burst";r=0;t=[12]/,
        'x-ratelimit-remaining': '0',
        'access-control-allow-origin': 'https://app.example',
      })
      t.match(refused?.json(), {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        status: 429,
        code: 'quota-exceeded',
        instance: /^urn:uuid:/,
        'violated-policies': ['sessions-whoami.burst'],
      })
      await waitUntil('the record', () => records('deny').length > 0)
      t.match(records('deny')[0], {
        v: 1,
        mode: 'enforce',
        rule: 'sessions-whoami',
        kind: 'project-limits',
        rev: /^sha256:/,
        src: /project-limits.yaml:\d+$/,
        project: 'fields',
        plan: 'developer',
        environment: 'development',
        method: 'GET',
        route: '/sessions/whoami',
        counters: [
          { policy: 'sessions-whoami.burst', q: 10, used: 10 },
          { policy: 'sessions-whoami.sustained', q: 300 },
        ],
        would_status: 429,
        sent_status: 429,
        store: store.recorded,
      })
    })

    t.test('a client that waits Retry-After is admitted', async t => {
      const { ask } = await start(t, { projects: oneProject('patient') })
      const knock = () => ask('/self-service/registration', { host: 'patient.localhost', method: 'POST' })
      t.equal((await knock()).status, 200)
      const refused = await knock()
      t.equal(refused.status, 429)
      await sleep(Number(refused.headers['retry-after']) * 1000)
      t.equal((await knock()).status, 200)
    })

    t.test('an enforced in-flight rule admits one write at a time to a resource', async t => {
      const { ask, work, records } = await start(t)
      const wait = { 'x-wait': '1' }
      const first = ask('/admin/identities/7', { method: 'PATCH', headers: wait })
      await waitUntil('the first works', () => work.started.length === 1)
      const second = await ask('/admin/identities/7/', { method: 'DELETE' })
      t.equal(second.status, 429, 'the slot covers all methods, with and without a trailing slash')
      t.match(second.headers, { 'retry-after': '1', 'ratelimit-policy': /;q=1;qu="concurrent-requests"$/ })
      t.equal((await ask('/admin/identities/7')).status, 200, 'reading needs no slot')
      t.equal(
        (await ask('/admin/identities/8', { method: 'PATCH' })).status,
        200,
        'another resource has its own slot',
      )
      t.equal(
        (await ask('/admin/identities/7', { method: 'PATCH', host: 'dev.localhost' })).status,
        200,
        'another project has its own slot',
      )
      work.finish()
      t.equal((await first).status, 200)
      t.equal((await ask('/admin/identities/7', { method: 'PATCH' })).status, 200, 'the slot is given back')
      t.same(
        records('deny').map(({ kind, route }) => [kind, route]),
        [['in-flight', 'DELETE /admin/identities/{id}']],
      )
    })

    t.test('a slot whose client has left is held until the upstream has finished', async t => {
      const { ask, work } = await start(t)
      const leaving = new AbortController()
      const gone = ask('/admin/identities/7', {
        method: 'PATCH',
        headers: { 'x-wait': '1' },
        signal: leaving.signal,
      })
      await waitUntil('the request to reach the upstream', () => work.started.length === 1)
      leaving.abort()
      await t.rejects(gone, { name: 'AbortError' })
      await sleep(100)
      t.equal((await ask('/admin/identities/7', { method: 'PATCH' })).status, 429)
      work.finish()
      await waitUntil(
        'the slot is back',
        async () => (await ask('/admin/identities/7', { method: 'PATCH' })).status === 200,
      )
      t.equal(work.started.filter(req => req.method === 'PATCH').length, 2)
    })

    t.test('a report-only rule never refuses, and records what it would have refused', async t => {
      const { ask, work, records } = await start(t)
      const extend = () => ask('/admin/sessions/5/extend', { method: 'PATCH', headers: { 'x-wait': '1' } })
      const first = extend()
      await waitUntil('the first works', () => work.started.length === 1)
      const second = extend()
      await waitUntil('the second works too', () => work.started.length === 2)
      work.finish()
      t.strictSame([(await first).status, (await second).status], [200, 200])
      await waitUntil('the record', () => records('would_deny').length === 1)
      t.match(records('would_deny')[0], {
        mode: 'report-only',
        kind: 'in-flight',
        would_status: 429,
        sent_status: 200,
      })
      t.strictSame(records('deny'), [])
    })

    t.test(
      'recovery is counted by e-mail or flow id, wherever these are sent, and the body arrives unchanged',
      async t => {
        const bodies: string[] = []
        const held: ServerResponse[] = []
        const upstream = await startApp(t, async (req, res) => {
          const chunks: Buffer[] = []
          for await (const chunk of req) chunks.push(chunk)
          bodies.push(Buffer.concat(chunks).toString())
          held.push(res)
        })
        const gateway = await testGateway(t, { policies: shipped, upstream, settings })
        const url = `${gateway.url}/self-service/recovery`
        const post = (type: string, body: string, query = '') =>
          send(url + query, {
            method: 'POST',
            headers: { host: 'acme.localhost', 'content-type': type },
            body,
          })
        const form = 'application/x-www-form-urlencoded'
        const json = 'application/json'
        const long = `{"email":"Ann@Example.org","note":"${'x'.repeat(40_000)}"}`
        const answers = [
          post(form, 'email=ann%40example.org&method=code'),
          post(json, long),
          post(form, 'email=bob%40example.org'),
          post(json, '{}', '?flow=f1'),
          post(json, '{"flow":"f1"}'),
          post(form, 'method=code'),
        ]
        await waitUntil('all six reach the upstream', () => held.length === answers.length)
        for (const res of held) res.end()
        t.strictSame(new Set((await Promise.all(answers)).map(({ status }) => status)), new Set([200]))
        t.ok(bodies.includes(long))
        const would = () => gateway.lines.filter(line => line.decision === 'would_deny')
        await waitUntil('two records', () => would().length === 2)
        t.notMatch(
          JSON.stringify(gateway.lines),
          /ann|example\.org|"f1"/i,
          'the log holds no e-mail and no flow id',
        )
      },
    )
  })
}

t.test('requests go on while Redis is away, and Redis counts again when it is back', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = await testGateway(t, { upstream, policies: shipped, settings: redisSettings(redis.url) })
  const ask = () => send(`${gateway.url}/x`, { headers: { host: 'acme.localhost' } })
  const metrics = async () => (await send(`${gateway.adminUrl}/metrics`)).body
  const away = async () => /^sluice_store_fallback_active 1$/m.test(await metrics())
  await waitUntil('Redis counts', async () => (await ask()).status === 200 && !(await away()))
  await redis.kill()
  for (let i = 0; i < 10; i++) t.equal((await ask()).status, 200)
  t.ok(await away())
  await redis.restart()
  await waitUntil('Redis is back', async () => !(await away()))
  t.equal((await ask()).status, 200)
  t.same(
    gateway.lines.filter(({ msg }) => String(msg).startsWith('Redis is')).map(({ level }) => level),
    ['warn', 'info'],
  )
})

function oneProject(id: string): string {
  return `version: 1\nprojects: [{ id: ${id}, plan: developer, environment: development, hosts: [${id}.localhost] }]\n`
}
