import { appendFileSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Explanation } from '../../gateway/explain/explanation.js'
import { holdIdentity } from '../../services/identity/routes/cookies.js'
import { Signer } from '../../services/identity/secret.js'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { matchesGolden } from '../helpers/golden.js'
import { send, startApp } from '../helpers/http.js'
import { redisUrl } from '../helpers/redis.js'

const SHIPPED = ['--config', 'config']
const offline = (...args: string[]) => sluice(['explain', ...args, ...SHIPPED])
const asJson = async (...args: string[]) => JSON.parse((await offline(...args, '--json')).out) as Explanation

t.test(
  'without a gateway explain shows the project, the path, the bucket, the rules and the response fields',
  async t => {
    const { code, out, err } = await offline(
      'GET',
      '/admin//./identities?x=1',
      '--project',
      'acme-production',
    )
    t.match({ code, err }, { code: 0, err: '' })
    t.match(out, 'path: /admin/identities (its normal form, which is matched and counted)')
    t.match(out, 'project: acme-production, growth in production; found by host acme.localhost')
    t.match(out, 'bucket: identities-list, by GET /admin/identities')
    t.match(out, 'not identities-create (POST /admin/identities): another method')
    t.match(out, 'not catch-all (*): less specific than GET /admin/identities')
    t.match(out, 'identities-write: another method')
    t.match(out, 'RateLimit: "identities-list.burst";r=19;t=1, "identities-list.sustained";r=599;t=60')
  },
)

t.test(
  'the cookie of the embedded identity service is a credential, and explain names what it found',
  async t => {
    const fields = holdIdentity(
      new Signer([Buffer.alloc(32)]),
      { header: () => undefined } as never,
      'id',
      Date.now(),
    )
    const [cookie = ''] = String(fields['set-cookie']).split(';')
    const asked = (...headers: string[]) =>
      offline('POST', '/self-service/settings', ...headers.flatMap(one => ['--header', one]))
    t.match((await asked(`cookie: ${cookie}`)).out, /, with credentials \(cookie sluice_identity\)/)
    t.match((await asked('authorization: Bearer x')).out, /, with credentials \(header authorization\)/)
    t.match((await asked('cookie: my_session_id=1')).out, /, with credentials \(cookie \*session\*\)/)
    t.match((await asked('cookie: sluice_identity=')).out, ', without credentials')
  },
)

t.test('a path without a leading slash is explained', async t => {
  const { out } = await offline('GET', 'search', '--project', 'developer')
  t.match(out, 'Refused: 400 bad-target. The path does not begin with "/". Write it in front.')
})

t.test('--json reports the same for machines', async t => {
  const recovery = ['POST', '/self-service/recovery', '--project', 'acme-staging', '--ip', '2001:db8::7']
  const { out } = await offline(...recovery, '--body', 'email=a%40b.c', '--header', 'x-y: z', '--json')
  matchesGolden(t, out, 'explain.json')
  t.notMatch(out, 'a%40b.c', 'the body is not shown')
  const create = await asJson('POST', '/admin/identities', '--project', 'initech-production')
  t.match(create.bucket, {
    name: 'catch-all',
    passed: [{ bucket: 'identities-list', why: 'method' }, { why: 'no-quota' }, { why: 'method' }],
  })
})

t.test('explain says why a rule does not apply to the request', async t => {
  const { out } = await offline(
    ...[
      'POST',
      '/self-service/registration',
      '--host',
      'acme.localhost',
      '--header',
      'authorization: Bearer x',
    ],
  )
  t.match(
    out,
    /Rules that look at this path, but not at this request\n {2}registration-flood: its "when" leaves this request out: the request carries\s+credentials, which\s+nobody has verified/,
  )
  t.match(out, 'with credentials')
  t.notMatch(out, 'Bearer')
})

t.test('a condition on the host of unknown callers holds in the reasons, too', async t => {
  const folder = t.testdir({
    'gateway.yaml': `version: 1
upstreams: { app: { url: "http://127.0.0.1:9" } }
routes: [{ path: /**, upstream: app }]`,
    'projects.yaml': 'version: 1\nprojects: []',
    policies: {
      'volumetric.yaml': `version: 1
kind: volumetric
rules:
  - id: shop
    match: ["*"]
    when: { projects: ["host:shop.example"], authenticated: true }
    key: [client-ip]
    quota: { requests: 5, per: 60s }`,
    },
  })
  const reasonFor = async (host: string) => {
    const asked = ['POST', '/', '--host', host, '--config', folder, '--json']
    return (JSON.parse((await sluice(['explain', ...asked])).out) as Explanation).passed
  }
  t.match(await reasonFor('shop.example'), [{ rule: 'shop', why: 'when', unmet: 'authenticated' }])
  t.match(await reasonFor('other.example'), [{ rule: 'shop', why: 'when', unmet: 'projects' }])
})

t.test('explain says that a path is closed, although a route leads there', async t => {
  const folder = t.testdir()
  cpSync('config', folder, { recursive: true })
  appendFileSync(join(folder, 'gateway.yaml'), '\nclosed: [{ prefix: /admin/ }]\n')
  const asked = ['explain', 'GET', '/admin/identities', '--config', folder]
  const { out } = await sluice(asked, { columns: 200 })
  t.match(out, 'path: /admin/identities (already in normal form), under "closed" in gateway.yaml\n')
  t.match(out, 'Refused: 404 no-route')
  const told = JSON.parse((await sluice([...asked, '--json'])).out) as Explanation
  t.match(told, { request: { closed: true }, upstream: null })
})

t.test('explain says that the gateway answers quotaPath, and what limits it', async t => {
  const folder = t.testdir()
  cpSync('config', folder, { recursive: true })
  appendFileSync(join(folder, 'gateway.yaml'), '\nquotaPath: /.well-known/quota\n')
  const asked = ['explain', 'GET', '/.well-known/quota', '--project', 'developer', '--config', folder]
  const { out } = await sluice(asked, { columns: 200 })
  t.match(out, 'path: /.well-known/quota (already in normal form), quotaPath in gateway.yaml\n')
  t.match(out, "200, by the gateway itself, with the caller's own windows.")
  const told = JSON.parse((await sluice([...asked, '--json'])).out) as Explanation
  t.match(told, { request: { quota_path: true }, upstream: null, bucket: null, answer: { status: 200 } })
  t.same(
    told.rules.map(({ rule }) => rule),
    ['quotaPath'],
  )
  const post = await sluice(asked.map(word => (word === 'GET' ? 'POST' : word)))
  t.match(post.out, 'Refused: 405 method-not-allowed')
})

t.test('the project is found as in the gateway, or taken from --project', async t => {
  t.match(await asJson('GET', '/', '--host', 'dev.localhost'), { project: { id: 'developer', by: 'host' } })
  t.match(await asJson('GET', 'http://globex.localhost/'), {
    project: { id: 'globex-production', by: 'host' },
  })
  t.match(await asJson('GET', '/', '--host', 'else.where'), {
    project: {
      id: 'client:127.0.0.1',
      plan: 'developer',
      by: 'nobody',
    },
    caller: { requires: null, credential: 'none', asked: [{ identifier: 'host', found: null, fault: null }] },
  })
  t.match(await asJson('GET', '/', '--host', 'dev.localhost', '--project', 'acme-staging'), {
    project: { id: 'acme-staging', by: 'given' },
    caller: { asked: [{ identifier: 'host', found: 'developer' }] },
  })
})

t.test('explain shows the responses that the gateway gives by itself', async t => {
  t.match(await asJson('GET', '/a%2Fb'), {
    request: { path: null },
    answer: { status: 400, code: 'bad-target' },
  })
  t.match(await asJson('TRACE', '/'), { answer: { status: 405 } })
  t.match(
    (await offline('GET', '/', '--host', 'a b')).out,
    /path: not looked at\n(.*\n)*.*Refused: 400 bad-host/,
  )
  for (const asked of [
    ['OPTIONS', '*'],
    ['OPTIONS', '/admin/identities', '--header', 'max-forwards: 0'],
  ]) {
    t.match(await asJson(...asked), {
      rules: { length: 0 },
      answer: { status: 204, code: null },
    })
    t.match((await offline(...asked)).out, '204, by the gateway itself: no rule is asked.')
  }
})

t.test('invalid arguments are refused with exit code 2', async t => {
  t.match(await offline('GET', '/', '--project', 'acme-stagin'), {
    code: 2,
    err: /Did you mean acme-staging\?/,
  })
  t.match(await offline('FETCH', '/'), { code: 2, err: /"FETCH" is not a method/ })
  t.match(await offline('GET', '/', '--ip', 'here'), { code: 2, err: /must be an address/ })
  t.match(await offline('GET', '/', '--header', 'broken'), { code: 2, err: /'name: value'/ })
  t.match(await offline('GET', '/', '--header', 'host: a'), { code: 2, err: /--host/ })
  t.match(await offline('GET'), { code: 2, err: /needs METHOD PATH/ })
})

t.test('the output fits forty columns', async t => {
  const { out } = await sluice(
    ['explain', 'POST', '/self-service/recovery', '--project', 'developer', ...SHIPPED],
    { columns: 40 },
  )
  t.same(
    out.split('\n').filter(line => line.length > 40 && line.trim().includes(' ')),
    [],
  )
})

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { things: [/things], all: ["*"] }
limits: [{ for: [{}], quotas: { things: { burst: 100, sustained: 3 }, all: { burst: 5, sustained: 150 } } }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [POST /things], key: [client-ip], quota: { requests: 2, per: 1h }, mode: report-only }
`,
}

t.test('a report-only bucket is explained beside the enforced one, with its own numbers', async t => {
  const watched = `version: 1
kind: project-limits
mode: report-only
buckets: { watched: [/things] }
limits: [{ for: [{}], quotas: { watched: { burst: 2, sustained: 9 } } }]
`
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const policies = { ...POLICIES, 'watched.yaml': watched }
  const gateway = await testGateway(t, { upstream, policies })
  const ask = async (path: string) =>
    (await sluice(['explain', 'GET', path, '--host', 'acme.localhost', '--live', gateway.adminUrl])).out
  const things = await ask('/things')
  t.match(things, 'report-only bucket: watched, by /things')
  t.match(things, 'watched.burst: 2 per second; 1 used, 1 left')
  const others = await ask('/others')
  t.match(others, 'bucket: all, by *')
  t.match(others, 'report-only bucket: none: no report-only project limit counts this request')
})

const stores: [name: string, settings: (t: Test) => Promise<string | undefined>][] = [
  ['in its own process', async () => ''],
  [
    'on Redis',
    async t => {
      const url = await redisUrl(t)
      return url && `redis: ${url}\nstore: { deadline: 2s }`
    },
  ],
]
for (const [name, settingsOf] of stores) {
  t.test(
    `a running gateway that counts ${name} reports its counters, and explain does not change them`,
    async t => {
      const settings = await settingsOf(t)
      if (settings === undefined) return
      const upstream = await startApp(t, (_req, res) => res.end('done'))
      const gateway = await testGateway(t, { upstream, settings, policies: POLICIES })
      const ask = async (...more: string[]) => {
        const where = ['--host', 'acme.localhost', '--live', gateway.adminUrl, '--json', ...more]
        return JSON.parse((await sluice(['explain', 'POST', '/things', ...where])).out) as Explanation
      }
      const post = () =>
        send(`${gateway.url}/things`, { method: 'POST', headers: { host: 'acme.localhost' } })
      const fresh = await ask()
      t.match(fresh, {
        live: true,
        project: { id: 'acme' },
        rules: [
          {
            counters: [
              { used: 1, left: 99 },
              { used: 1, left: 2 },
            ],
          },
        ],
      })
      for (let i = 0; i < 10; i += 1) t.same(await ask(), fresh, 'explaining again changes nothing')
      for (let i = 0; i < 3; i += 1) {
        const told = await ask()
        const answer = await post()
        t.equal(answer.status, 200)
        t.equal(
          told.answer.fields.find(([field]) => field === 'x-ratelimit-remaining')?.[1],
          answer.headers['x-ratelimit-remaining'],
          'the next response has the remaining number that explain predicted',
        )
      }
      const spent = await ask()
      t.match(spent.answer, {
        status: 429,
        code: 'quota-exceeded',
        refused_by: ['things'],
        would_be_refused_by: ['flood'],
      })
      t.ok(spent.answer.fields.some(([field]) => field === 'Retry-After'))
      t.match(spent.rules[0], {
        rule: 'things',
        result: 'limited',
        counters: [{ violated: false }, { used: 3, violated: true }],
      })
      t.equal((await post()).status, 429)
      const { out } = await sluice([
        'explain',
        'POST',
        '/things',
        '--project',
        'acme',
        '--live',
        gateway.adminUrl,
      ])
      t.match(out, /things\.sustained: 3 per minute; 3 used, 0 left, may pass in \d+ (s|min)/)
      t.match(out, 'Refused by things: 429 quota-exceeded.')
      t.match(out, 'Report-only, so it passes all the same: flood would refuse it.')
    },
  )
}

t.test('a missing gateway, another server and an unknown project are reported', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = await testGateway(t, { upstream, policies: POLICIES })
  const live = (...args: string[]) => sluice(['explain', 'GET', '/', ...args])
  t.match(await live('--project', 'nobody', '--live', gateway.adminUrl), {
    code: 2,
    err: /no project "nobody"/,
  })
  t.match(await live('--live', 'http://127.0.0.1:9'), {
    code: 1,
    err: /Nothing answers on http:\/\/127\.0\.0\.1:9\/explain/,
  })
  t.match(await live('--live', upstream), { code: 1, err: /is not a gateway that explains/ })
  t.match(await live('--live', 'no/such/folder'), { code: 2, err: /cannot be read/ })
})

t.test('from the files, explain says that a token can only be checked by a running gateway', async t => {
  const folder = t.testdir({
    'gateway.yaml': `version: 1
listen: { host: 127.0.0.1, port: 8080 }
admin: { host: 127.0.0.1, port: 8081 }
upstreams: { app: { url: "http://127.0.0.1:3000" } }
identify: [{ plugin: jwt, issuer: "https://idp.example/", audience: api, jwks: "https://idp.example/keys", project: azp }]
routes: [{ path: "/**", upstream: app, auth: required }]
unknownProject: reject
policies: limits
`,
    'projects.yaml': 'version: 1\nprojects: []\n',
    limits: {},
  })
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = `${part({ alg: 'ES256', kid: 'a' })}.${part({ iss: 'https://idp.example/' })}.${'A'.repeat(86)}`
  const { out } = await sluice([
    ...['explain', 'GET', '/x', '--header', `authorization: Bearer ${token}`],
    ...['--config', folder],
  ])
  t.match(out.replaceAll(/\s+/g, ' '), /the files alone cannot check this credential.*--live asks one/)
  t.notMatch(out, /Try again/)
})

t.test('a rule that counts messages says so, and what it would say to the first one', async t => {
  const config = t.testdir({
    'gateway.yaml':
      'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n',
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {
      'messages.yaml':
        'version: 1\nkind: volumetric\nrules: [{ id: chat, match: [/chat], key: [client-ip], count: message, reads: true, quota: { requests: 5, per: 1m } }]\n',
    },
  })
  const ask = (...fields: string[]) =>
    sluice(['explain', 'GET', '/chat', ...fields.flatMap(one => ['--header', one]), '--config', config])
  const opening = await ask('connection: upgrade', 'upgrade: websocket')
  t.match(opening.out, 'counts: the messages of WebSockets')
  t.match(opening.out, 'chat: 5 per minute')
  t.match(opening.out, 'says: to the next message yes')
  t.match(
    (await ask()).out.replace(/\s+/g, ' '),
    'says: nothing: it counts the messages of WebSockets, and this request opens none',
  )
})
