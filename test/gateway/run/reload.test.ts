import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gatewayYaml } from '../../helpers/gateway.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { rawClient } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { identifyPlugin } from '../configured/third-party/written-plugins.js'
import { limits, start } from './reloading.js'

t.test(
  'an invalid configuration is refused with file, line and column, and the last valid one stays',
  async t => {
    const gateway = await start(t)
    const before = await gateway.state()
    t.match(before, {
      revision: /^sha256:/,
      loadedAt: /^\d{4}-.*Z$/,
      needsRestart: { length: 0 },
      lastReload: null,
    })
    const file = 'policies/limits.yaml'
    for (const [text, place, sentence] of [
      ['version: 1\nkind: [project-limits\n', '3:1', /Not well-formed YAML/],
      [`${limits()}version: 1\n`, '9:1', /written twice/],
      [limits().replace('catch-all: {', 'cath-all: {'), '8:', /Did you mean "catch-all"/],
      [limits().replace('[/scim/**]', '[/scim/**, "*"]'), '3:', /ties with/],
    ] as const) {
      const answer = await gateway.edit(file, text)
      t.equal(answer.status, 422)
      const problem = answer.json<{ revision: string; problems: { file: string; message: string }[] }>()
      t.match(problem, { status: 422, title: String, revision: before.revision })
      t.match(problem.problems[0], {
        file: join(gateway.folder, file),
        line: Number,
        col: Number,
        path: String,
      })
      const line = gateway.lines.at(-1) as { level: string; msg: string; problems: string[] }
      t.match(line, { level: 'error', trigger: 'admin', msg: /^Configuration refused for \d problem/ })
      t.ok(
        line.problems.some(
          one => one.startsWith(`${join(gateway.folder, file)}:${place}`) && sentence.test(one),
        ),
        line.problems.join('\n'),
      )
      const state = await gateway.state()
      t.match(state, {
        revision: before.revision,
        loadedAt: before.loadedAt,
        lastReload: { result: 'refused' },
      })
      t.ok(state.lastReload?.problems.length)
      t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /, 5;w=60$/ })
    }

    const many = Array.from({ length: 300 }, (_, i) => `odd${i}: 1\n`).join('')
    const answer = await gateway.edit(file, limits() + many)
    t.match(answer.json(), { problemCount: 300, problems: { length: 100 } })
    t.match(
      gateway.lines.at(-1),
      { msg: /300 problems/, problems: { length: 100 } },
      'the log lists a hundred of three hundred problems',
    )

    const mended = await gateway.edit(file, limits({ scim: 6 }))
    t.equal(mended.status, 200)
    const state = await gateway.state()
    t.match(state, { lastReload: { result: 'loaded', trigger: 'admin' }, revision: /^sha256:/ })
    t.not(state.revision, before.revision)
    t.match(mended.json(), { result: 'loaded', revision: state.revision })
    t.match(gateway.lines.at(-1), { level: 'info', revision: state.revision, before: before.revision })
    const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
    t.match(metrics, `sluice_policy_info{rev="${state.revision}"} 1`)
    t.notMatch(metrics, before.revision)
    t.match(metrics, 'sluice_policy_reloads_total{result="loaded"} 2')
    t.match(metrics, 'sluice_policy_reloads_total{result="refused"} 5')
  },
)

t.test('comments do not change the revision, but records name the new line numbers', async t => {
  const gateway = await start(t, { policies: { 'limits.yaml': limits({ scim: 1 }) } })
  const { revision } = await gateway.state()
  await gateway.ask('/scim/x')
  t.equal((await gateway.ask('/scim/x')).status, 429)
  const answer = await gateway.edit('policies/limits.yaml', `# more\n# words\n${limits({ scim: 1 })}`)
  t.match(answer.json(), { result: 'loaded', revision })
  t.equal((await gateway.ask('/scim/x')).status, 429, 'the reload refills no quota')
  const records = gateway.lines.filter(line => line.decision === 'deny')
  const lines = records.map(({ src }) => Number(/\d+$/.exec(String(src))?.[0]))
  t.same(lines[1], (lines[0] as number) + 2)
})

t.test('a reload gives unknown hosts no fresh counters', async t => {
  const gateway = await start(t, {
    settings: 'unknownProject: { plan: developer, environment: production, countBy: host }',
  })
  const ask = (host: string) => gateway.ask('/scim/x', { headers: { host } })
  for (let i = 0; i < 100; i += 1) await ask(`made-up-${i}.example`)
  for (let i = 0; i < 5; i += 1) t.equal((await ask(`later-${i}.example`)).status, 200)
  t.equal((await ask('later-5.example')).status, 429, 'after a hundred, unknown hosts share one counter')
  await gateway.reloader.reload('SIGHUP')
  t.equal((await ask('later-6.example')).status, 429)
})

t.test(
  'a reload applies every setting at once except those that need a restart, and names these',
  async t => {
    const app = await startApp(t, (req, res) => res.end(JSON.stringify(req.headers)))
    const other = await startApp(t, (_req, res) => res.end('other'))
    const { ask, edit, state, lines, url } = await start(t, { upstream: app })
    const answer = await edit(
      'gateway.yaml',
      `version: 1
listen: { host: 127.0.0.1, port: 1 }
admin: { host: 127.0.0.1, port: 0 }
redis: redis://127.0.0.1:1
upstreams: { app: { url: "${app}" }, other: { url: "${other}" } }
routes: [{ path: /**, upstream: app }, { path: /other/**, upstream: other }]
identify: [{ plugin: header, header: x-project }, host]
unknownProject: reject
trustedProxies: [127.0.0.1]
fingerprintHeaders: { ja4: x-my-ja4 }
rateLimitFields: x
cors: none
log: { decisions: all }
`,
    )
    const { result, needsRestart } = answer.json<{ result: string; needsRestart: string[] }>()
    t.same([result, needsRestart], ['loaded', ['listen', 'redis']])
    t.match(lines.at(-1), {
      level: 'warn',
      msg: /reloaded, except for listen and redis: that needs a restart/,
    })
    t.match(await state(), { needsRestart, lastReload: { needsRestart } })

    t.equal((await ask('/other/x')).body, 'other', 'upstreams and routes apply')
    t.equal(
      (await ask('/x', { headers: { host: 'nobody.localhost' } })).status,
      404,
      'unknownProject applies',
    )
    const seen = await ask('/x', {
      headers: {
        'x-project': 'dev',
        host: 'any',
        'x-my-ja4': 'f',
        'x-ja4-fingerprint': 'g',
        origin: 'https://a',
      },
    })
    t.match(
      seen.json(),
      { 'x-sluice-project': 'dev', 'x-my-ja4': 'f' },
      'identify, trustedProxies and fingerprintHeaders apply',
    )
    t.ok(seen.headers['x-ratelimit-limit'])
    t.notOk(seen.headers.ratelimit, 'rateLimitFields applies')
    t.ok(
      lines.some(({ decision }) => decision === 'allow'),
      'log.decisions applies',
    )
    const refused = await ask('/x', { headers: { host: 'nobody', origin: 'https://a' } })
    t.notOk(refused.headers['access-control-allow-origin'], 'cors applies')

    t.equal((await edit('gateway.yaml', gatewayYaml({ upstream: app }))).status, 200)
    t.same((await state()).needsRestart, [])
    t.equal((await ask('/other/x', { headers: { host: 'nobody.localhost' } })).status, 200, url)
  },
)

t.test('a plugin file is watched, and changed code needs a restart', async t => {
  const folder = t.testdir({ 'p.mjs': `export default ${identifyPlugin('mine', '() => undefined')}` })
  const file = join(folder, 'p.mjs')
  const gateway = await start(t, { settings: `plugins: ["${file}"]\nidentify: [mine, host]` })
  const reload = async () => (await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).json()
  t.match(await reload(), { result: 'loaded', needsRestart: { length: 0 } })
  const before = gateway.reloader.sources.get(file)
  t.ok(before, 'the plugin file is watched')
  appendFileSync(file, '// mended\n')
  t.match(await reload(), { result: 'loaded', needsRestart: ['plugins'] })
  t.not(gateway.reloader.sources.get(file), before)
  t.match(await gateway.state(), { needsRestart: ['plugins'] })
  rmSync(file)
  t.match(await reload(), { result: 'loaded', needsRestart: ['plugins'] })
  writeFileSync(file, `export default ${identifyPlugin('mine', '() => undefined')}`)
  t.match(
    await reload(),
    { result: 'loaded', needsRestart: { length: 0 } },
    'no restart is needed once the loaded code is back',
  )
})

t.test('a service that cannot start makes the reload fail, with its place in the file', async t => {
  const { ask, edit } = await start(t)
  const text = gatewayYaml({ upstream: 'http://127.0.0.1:1' }).replace(
    'upstreams: {',
    'upstreams: { id: { embedded: identity },',
  )
  const answer = await edit('gateway.yaml', text)
  t.equal(answer.status, 422)
  t.match(answer.json(), {
    problems: [{ path: 'upstreams.id.embedded', line: 4, message: /no identity service/ }],
  })
  t.equal((await ask('/x')).body, 'done')
})

t.test('POST /reload refuses cross-site requests and large bodies, and no other method reloads', async t => {
  const { adminUrl, state } = await start(t)
  const post = async (headers: Record<string, string>, body = '') =>
    (await send(`${adminUrl}/reload`, { method: 'POST', headers, body })).status
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  t.equal(await post({ ...form, origin: 'https://evil.example' }, 'a=b'), 403)
  t.equal(await post({ 'content-type': 'text/plain', origin: 'null' }, '{}'), 403)
  t.equal(await post({ origin: 'https://evil.example' }), 403)
  t.equal((await state()).lastReload, null)
  const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const answer = await send(`${adminUrl}/reload`, { method: 'OPTIONS', headers: preflight })
  t.equal(answer.status, 405)
  t.notOk(answer.headers['access-control-allow-origin'], 'no CORS field allows JSON from other sites')
  t.equal((await send(`${adminUrl}/reload`)).status, 405)

  t.equal(await post({}), 200)
  t.equal(await post(form, 'curl -d'), 200)
  t.equal(await post({ 'content-type': 'application/json' }), 200)
  t.equal(await post({ 'content-type': 'application/json', origin: 'http://127.0.0.1' }, '{}'), 200)
  t.equal(await post({}, 'x'.repeat(5000)), 413)
})

t.test('fifty reload calls run two reloads at most, and the last reads the newest files', async t => {
  const gateway = await start(t)
  const asked = []
  for (let scim = 100; scim < 150; scim += 1) {
    gateway.write('policies/limits.yaml', limits({ scim }))
    asked.push(gateway.reloader.reload('SIGHUP'))
  }
  const results = await Promise.all(asked)
  t.ok(results.every(({ result }) => result === 'loaded'))
  t.ok(
    gateway.lines.filter(({ trigger }) => trigger === 'SIGHUP').length <= 2,
    'fifty calls run two reloads at most',
  )
  t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /149;w=60/ })
})

t.test(
  'a process reloads on SIGHUP, on a file change and on request, and its services keep running',
  async t => {
    const yaml = (more = '') => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { identity: { embedded: identity }${more} }
routes: [{ path: /**, upstream: identity }${more && ', { path: /api/**, upstream: directory }'}]
`
    const folder = writeConfig(t, yaml(), { 'limits.yaml': limits() })
    const { url, adminUrl, out, signal } = await gatewayProcess(t, folder)
    const told = (trigger: string) => waitUntil(trigger, () => out().includes(`"trigger":"${trigger}"`))

    const client = await rawClient(Number(new URL(url).port))
    const body = JSON.stringify({ traits: { email: 'ann@acme.example', name: { first: 'Ann' } } })
    const head = [
      'POST /self-service/registration HTTP/1.1',
      'Host: acme.localhost',
      'Accept: application/json',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    client.send(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`)
    signal('SIGHUP')
    await told('SIGHUP')

    writeFileSync(join(folder, 'gateway.yaml'), yaml(', directory: { embedded: directory }'))
    await told('watch')
    t.match(out(), /sk_/, 'an added service is started')
    t.equal((await send(`${url}/api/v1/directory-sync?tenant=a&product=b`)).status, 401)

    t.equal((await send(`${adminUrl}/reload`, { method: 'POST' })).status, 200)
    client.send(body.slice(5))
    t.match(await client.message(), { line: /^HTTP\/1.1 20[01] /, body: /ann@acme.example/ })
    client.socket.destroy()
    signal('SIGTERM')
    await waitUntil('the end', () => out().includes('Draining'))
  },
)
