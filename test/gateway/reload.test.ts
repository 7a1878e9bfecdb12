/** A configuration that changes while requests run: what comes into force, when, and what stays as it was. */
import { once } from 'node:events'
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { type Watch, watchSources } from '../../gateway/watch.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { type Sent, send, startApp } from '../helpers/http.js'
import { rawClient } from '../helpers/raw.js'
import { redisUrl } from '../helpers/redis.js'
import { sleep, waitUntil } from '../helpers/wait.js'

/** Sustained quotas only: within a test nothing comes back by itself. */
const limits = ({ scim = 5, others = 10_000 } = {}) => `version: 1
kind: project-limits
buckets: { scim: [/scim/**], catch-all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
      scim: { burst: 1000, sustained: ${scim} }
      catch-all: { burst: 10000, sustained: ${others} }
`

const inFlight = (max: number) => `version: 1
kind: in-flight
rules: [{ id: writes, match: [POST /work], key: [project], max: ${max}, mode: enforce }]
`

interface Edited extends TestGateway {
  /** Writes one file of the configuration, in place. */
  write(name: string, text: string): void
  /** Writes it and asks for a reload; the answer of the admin port. */
  edit(name: string, text: string): Promise<{ status: number; json<T>(): T }>
  ask(path: string, sent?: Sent): ReturnType<typeof send>
  state(): Promise<State>
}

interface State {
  readonly revision: string
  readonly loadedAt: string
  readonly needsRestart: string[]
  readonly lastReload: { readonly result: string; readonly problems: object[] } | null
}

async function start(t: Test, options: Partial<TestGatewayOptions> = {}): Promise<Edited> {
  const upstream = options.upstream ?? (await startApp(t, (req, res) => req.resume() && res.end('done')))
  const policies = { 'limits.yaml': limits() }
  const gateway = await testGateway(t, { policies, ...options, upstream })
  const write = (name: string, text: string) => writeFileSync(join(gateway.folder, name), text)
  return {
    ...gateway,
    write,
    edit(name, text) {
      write(name, text)
      return send(`${gateway.adminUrl}/reload`, { method: 'POST' })
    },
    ask: (path, sent) =>
      send(gateway.url + path, { ...sent, headers: { host: 'acme.localhost', ...sent?.headers } }),
    state: async () => (await send(`${gateway.adminUrl}/state`)).json<State>(),
  }
}

/** The gateway.yaml of `start`, for another upstream or with more settings. */
const gatewayYaml = (upstream: string, more = '') => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}", timeouts: { connect: 1s, head: 2s, idle: 2s } } }
routes: [{ path: /**, upstream: app }]
drain: 100ms
${more}
`

/** Sends request after request on connections of its own, until it is stopped. */
function traffic(gateway: Edited, path: string, connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const seen = { admitted: 0, refused: 0, failed: [] as unknown[] }
  let isRunning = true
  const run = async () => {
    while (isRunning) {
      try {
        const { status } = await gateway.ask(path, { agent })
        if (status === 200) seen.admitted += 1
        else if (status === 429) seen.refused += 1
        else seen.failed.push(status)
      } catch (error) {
        seen.failed.push(error)
      }
    }
  }
  const running = Array.from({ length: connections }, run)
  return {
    seen,
    async stop() {
      isRunning = false
      await Promise.all(running)
      agent.destroy()
    },
  }
}

/** Looks after events only, unless told to look in between. */
function watching(t: Test, { reloader }: TestGateway, pollMs = 3_600_000): Watch & { reloads(): number } {
  let count = 0
  const changed = () => {
    count += 1
    return reloader.reload('watch')
  }
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => t.fail('watch', fields) }
  const watch = watchSources({ sources: () => reloader.sources, changed, log, pollMs })
  t.teardown(() => watch.close())
  return { ...watch, reloads: () => count }
}

t.test('a changed file is seen, however it was written, and read once', async t => {
  const gateway = await start(t)
  const watch = watching(t, gateway)
  const path = join(gateway.folder, 'policies', 'limits.yaml')
  const seen = async (quota: number) => {
    const limit = async () => String((await gateway.ask('/scim/x')).headers['x-ratelimit-limit'])
    await waitUntil(`${quota} in force`, async () => (await limit()).endsWith(`, ${quota};w=60`), 3000)
  }

  writeFileSync(path, limits({ scim: 101 }))
  await seen(101)
  writeFileSync(`${path}.new`, limits({ scim: 102 }))
  renameSync(`${path}.new`, path)
  await seen(102)
  t.equal(watch.reloads(), 2)

  const more = join(gateway.folder, 'policies', 'more.yaml')
  writeFileSync(more, inFlight(1))
  await waitUntil('a new file', () => watch.reloads() === 3)
  rmSync(more)
  await waitUntil('a removed file', () => watch.reloads() === 4)
  writeFileSync(join(gateway.folder, 'policies', '.limits.yaml.swp'), 'an editor at work')
  await sleep(300)
  t.equal(watch.reloads(), 4, 'what would not be read is no change')

  const folder = join(gateway.folder, 'policies')
  renameSync(folder, `${folder}.old`)
  mkdirSync(folder)
  writeFileSync(path, limits({ scim: 103 }))
  await seen(103)
  writeFileSync(path, limits({ scim: 104 }))
  await seen(104)
})

t.test('a Kubernetes volume is seen when its links are swapped, again and again', async t => {
  const gateway = await start(t)
  const policies = join(gateway.folder, 'policies')
  const volume = (name: string, scim: number) => {
    mkdirSync(join(policies, name))
    writeFileSync(join(policies, name, 'limits.yaml'), limits({ scim }))
    symlinkSync(name, join(policies, '..data_tmp'))
    renameSync(join(policies, '..data_tmp'), join(policies, '..data'))
  }
  rmSync(join(policies, 'limits.yaml'))
  volume('..2026_01', 101)
  symlinkSync(join('..data', 'limits.yaml'), join(policies, 'limits.yaml'))
  t.equal((await gateway.reloader.reload('SIGHUP')).result, 'loaded')

  const watch = watching(t, gateway)
  for (const [i, scim] of [102, 103].entries()) {
    volume(`..2026_02_${i}`, scim)
    await waitUntil('the swap', () => watch.reloads() === i + 1, 3000)
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': new RegExp(`${scim};w=60`) })
  }
})

t.test('a change that no event told of is found by looking', async t => {
  const gateway = await start(t)
  const outside = t.testdir({ 'limits.yaml': limits() })
  const path = join(gateway.folder, 'policies', 'limits.yaml')
  rmSync(path)
  symlinkSync(join(outside, 'limits.yaml'), path)
  await gateway.reloader.reload('SIGHUP')
  const watch = watching(t, gateway, 50)
  // Nothing changes in a watched folder or file: the name now means another file, in a folder nobody watches.
  writeFileSync(join(outside, 'new'), limits({ scim: 7 }))
  renameSync(join(outside, 'new'), join(outside, 'limits.yaml'))
  await waitUntil('the change', () => watch.reloads() === 1, 3000)
  t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /7;w=60/ })
})

t.test(
  'a file that is still being written is waited for; one cut in half is refused until it is whole',
  async t => {
    const gateway = await start(t)
    const watch = watching(t, gateway)
    const path = join(gateway.folder, 'policies', 'limits.yaml')
    const whole = limits({ scim: 77 })
    writeFileSync(path, '')
    for (let at = 0; at < whole.length; at += 40) {
      appendFileSync(path, whole.slice(at, at + 40))
      await sleep(25)
    }
    await waitUntil('the change', () => watch.reloads() === 1, 3000)
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /77;w=60/ })
    t.equal((await gateway.state()).lastReload?.result, 'loaded')

    const other = limits({ scim: 78 })
    writeFileSync(path, other.slice(0, 120))
    await waitUntil('the half', async () => (await gateway.state()).lastReload?.result === 'refused', 3000)
    appendFileSync(path, other.slice(120))
    await waitUntil('the rest', async () => (await gateway.state()).lastReload?.result === 'loaded', 3000)
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /78;w=60/ })
  },
)

t.test(
  'what is broken is refused with every place, seen everywhere, and the last good one stays',
  async t => {
    const gateway = await start(t)
    const before = await gateway.state()
    t.match(before, { revision: /^sha256:/, loadedAt: /^\d{4}-.*Z$/, needsRestart: [], lastReload: null })
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
      'however many there are',
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

t.test('comments and places change no revision, but the places that decision records name', async t => {
  const gateway = await start(t, { policies: { 'limits.yaml': limits({ scim: 1 }) } })
  const { revision } = await gateway.state()
  await gateway.ask('/scim/x')
  t.equal((await gateway.ask('/scim/x')).status, 429)
  const answer = await gateway.edit('policies/limits.yaml', `# more\n# words\n${limits({ scim: 1 })}`)
  t.match(answer.json(), { result: 'loaded', revision })
  t.equal((await gateway.ask('/scim/x')).status, 429, 'and refills nothing')
  const records = gateway.lines.filter(line => line.decision === 'deny')
  const lines = records.map(({ src }) => Number(/\d+$/.exec(String(src))?.[0]))
  t.same(lines[1], (lines[0] as number) + 2)
})

for (const store of ['in process', 'on Redis'] as const) {
  t.test(
    `quotas edited while requests run, ${store}: in force at once, and nothing spent is forgotten`,
    async t => {
      const redis = store === 'on Redis' ? await redisUrl(t) : ''
      if (redis === undefined) return
      // A busy test machine must not turn a slow answer into a stand-in.
      const settings = redis && `redis: ${redis}\nstore: { deadline: 2s }`
      const file = 'policies/limits.yaml'
      const gateway = await start(t, { settings })
      const { edit, ask } = gateway
      const scim = traffic(gateway, '/scim/v2/Users', 8)
      const others = traffic(gateway, '/elsewhere', 4)
      /** The admitted so far, once a hundred more were refused: denials are cached by then. */
      const admitted = async () => {
        const { refused } = scim.seen
        await waitUntil('refusals', () => scim.seen.refused > refused + 100)
        return scim.seen.admitted
      }
      const asDev = () => ask('/scim/v2/Users', { headers: { host: 'dev.localhost' } })
      for (let i = 0; i < 3; i += 1) t.equal((await asDev()).status, 200)
      t.equal(await admitted(), 5)
      t.equal((await edit(file, limits({ scim: 20 }))).status, 200)
      t.equal(await admitted(), 20, 'raised from 5 to 20: fifteen more')
      await edit(file, limits({ scim: 2 }))
      t.equal((await asDev()).status, 429, 'lowered to 2: at once, also for who had quota left')
      t.equal(await admitted(), 20)
      t.match((await ask('/scim/v2/Users')).headers, { 'x-ratelimit-limit': /2;w=60/ })
      await edit(file, limits({ scim: 2, others: 9000 }))
      await edit('policies/in-flight.yaml', inFlight(3))
      await edit('projects.yaml', PROJECTS.replace('projects:', `projects:\n  - ${OTHER}`))
      t.equal(await admitted(), 20, 'edits elsewhere: none')
      await edit(file, limits({ scim: 25, others: 9000 }))
      t.equal(await admitted(), 25, 'raised again: what was spent is still counted')
      t.match((await asDev()).headers, { 'x-ratelimit-remaining': '21' })

      await Promise.all([scim.stop(), others.stop()])
      const last = await ask('/elsewhere')
      const spent = 9000 - Number(last.headers['x-ratelimit-remaining'])
      t.equal(spent, others.seen.admitted + 1, 'the other rule has counted every request, through every edit')
      t.same([...scim.seen.failed, ...others.seen.failed], [])
    },
  )

  t.test(`slots edited while requests hold them, ${store}`, async t => {
    const redis = store === 'on Redis' ? await redisUrl(t) : ''
    if (redis === undefined) return
    const waiting: ServerResponse[] = []
    const upstream = await startApp(t, (_req, res) => void waiting.push(res))
    const gateway = await start(t, {
      upstream,
      policies: { 'limits.yaml': limits(), 'in-flight.yaml': inFlight(1) },
      settings: redis && `redis: ${redis}\nstore: { deadline: 2s }`,
    })
    const post = () => gateway.ask('/work', { method: 'POST' })
    const held = [post()]
    await waitUntil('the first', () => waiting.length === 1)
    t.equal((await post()).status, 429)
    await gateway.edit('policies/in-flight.yaml', inFlight(2))
    held.push(post())
    await waitUntil('a second, at once', () => waiting.length === 2)
    await gateway.edit('policies/in-flight.yaml', inFlight(1))
    t.equal((await post()).status, 429)
    waiting.pop()?.end()
    await held[1]
    t.equal((await post()).status, 429, 'one is still held, and one is the most')
    waiting.pop()?.end()
    await held[0]
    const next = waitUntil('a free slot', async () => (await post()).status === 200)
    await waitUntil('the upstream', () => waiting.pop()?.end('done'))
    await next
  })
}

const PROJECTS = `version: 1
projects:
  - { id: dev, plan: developer, environment: development, hosts: [dev.localhost] }
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
`
const OTHER = '{ id: other, plan: growth, environment: production, hosts: [other.localhost] }'

t.test('invented hosts get no fresh counters by a reload', async t => {
  const gateway = await start(t, { settings: 'unknownProject: developer' })
  const ask = (host: string) => gateway.ask('/scim/x', { headers: { host } })
  for (let i = 0; i < 100; i += 1) await ask(`made-up-${i}.example`)
  for (let i = 0; i < 5; i += 1) t.equal((await ask(`later-${i}.example`)).status, 200)
  t.equal((await ask('later-5.example')).status, 429, 'beyond a hundred they share one counter')
  await gateway.reloader.reload('SIGHUP')
  t.equal((await ask('later-6.example')).status, 429)
})

/** An upstream that answers when it is told to, and says who it is. */
class Work {
  readonly open = new Set<object>()
  readonly started: IncomingMessage[] = []
  readonly waiting: ServerResponse[] = []
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  readonly handler = (req: IncomingMessage, res: ServerResponse): void => {
    const { socket } = req
    this.open.add(socket)
    socket.on('close', () => this.open.delete(socket))
    this.started.push(req)
    req.resume()
    if (req.headers['x-wait'] === undefined) res.end(this.#name)
    else this.waiting.push(res)
  }
}

t.test('requests end on the upstream they began on, which is then closed', async t => {
  const first = new Work('first')
  const second = new Work('second')
  const [a, b] = [await startApp(t, first.handler), await startApp(t, second.handler)]
  const { ask, edit } = await start(t, {
    upstream: a,
    policies: { 'limits.yaml': limits(), 'in-flight.yaml': inFlight(1) },
  })
  t.equal((await ask('/x')).body, 'first')
  const wait = { 'x-wait': '1' }
  const slow = ask('/slow', { headers: wait })
  const leaving = new AbortController()
  await waitUntil('the first at work', () => first.waiting.length === 1)
  const held = ask('/work', { method: 'POST', headers: wait, signal: leaving.signal })
  await waitUntil('both at work', () => first.waiting.length === 2)

  t.equal((await edit('gateway.yaml', gatewayYaml(b))).status, 200)
  t.equal((await ask('/x')).body, 'second', 'the next request goes to the new one')
  const [slowly, holding] = first.waiting as [ServerResponse, ServerResponse]
  slowly.end('first')
  t.match(await slow, { status: 200, body: 'first' })
  leaving.abort()
  await t.rejects(held)
  await sleep(50)
  t.equal(first.open.size > 0, true, 'work that holds a slot goes on, also when its client has left')
  t.equal((await ask('/work', { method: 'POST' })).status, 429, 'and so does its slot')
  holding.end('first')
  await waitUntil('the former connections are closed', () => first.open.size === 0)
  await waitUntil('the slot is free', async () => (await ask('/work', { method: 'POST' })).status === 200)

  const before = second.started.at(-1)?.socket
  await edit('policies/limits.yaml', limits({ scim: 9 }))
  await ask('/x')
  t.equal(second.started.at(-1)?.socket, before, 'an upstream that stays as it was keeps its connections')
})

t.test('a WebSocket outlives any number of reloads', async t => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  t.teardown(() => server.close())
  server.on('connection', socket => socket.on('message', data => socket.send(`echo ${data}`)))
  const { port } = server.address() as { port: number }
  const elsewhere = await startApp(t, (_req, res) => res.end('elsewhere'))
  const { url, edit, ask } = await start(t, { upstream: `http://127.0.0.1:${port}` })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/chat`, { headers: { host: 'acme.localhost' } })
  const heard: string[] = []
  socket.on('message', data => heard.push(String(data)))
  await waitUntil('the handshake', () => socket.readyState === WebSocket.OPEN)
  await edit('gateway.yaml', gatewayYaml(elsewhere))
  await edit('policies/limits.yaml', limits({ scim: 9 }))
  t.equal((await ask('/x')).body, 'elsewhere')
  socket.send('hello')
  await waitUntil('the echo', () => heard[0] === 'echo hello')
  socket.close()
  await waitUntil('the end', () => server.clients.size === 0)
})

t.test(
  'everything that can change does so at once; what needs a restart is said, and the rest is taken',
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
    t.match(answer.json(), { result: 'loaded', needsRestart: ['listen', 'redis'] })
    t.match(lines.at(-1), { level: 'warn', msg: /reloaded, but for listen and redis: that needs a restart/ })
    t.match(await state(), {
      needsRestart: ['listen', 'redis'],
      lastReload: { needsRestart: ['listen', 'redis'] },
    })

    t.equal((await ask('/other/x')).body, 'other', 'upstreams and routes')
    t.equal((await ask('/x', { headers: { host: 'nobody.localhost' } })).status, 404, 'unknownProject')
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
      'identify, trustedProxies, fingerprints',
    )
    t.ok(seen.headers['x-ratelimit-limit'])
    t.notOk(seen.headers.ratelimit, 'rateLimitFields')
    t.ok(
      lines.some(({ decision }) => decision === 'allow'),
      'log.decisions',
    )
    const refused = await ask('/x', { headers: { host: 'nobody', origin: 'https://a' } })
    t.notOk(refused.headers['access-control-allow-origin'], 'cors')

    t.equal((await edit('gateway.yaml', gatewayYaml(app))).status, 200)
    t.match(await state(), { needsRestart: [] })
    t.equal((await ask('/other/x', { headers: { host: 'nobody.localhost' } })).status, 200, url)
  },
)

t.test('a service that does not start refuses the reload at its place', async t => {
  const { ask, edit } = await start(t)
  const text = gatewayYaml('http://127.0.0.1:1').replace(
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

t.test('POST /reload is not for pages of other sites, and is asked for in no other way', async t => {
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
  t.notOk(answer.headers['access-control-allow-origin'], 'so JSON from other sites never comes')
  t.equal((await send(`${adminUrl}/reload`)).status, 405)

  t.equal(await post({}), 200)
  t.equal(await post(form, 'curl -d'), 200)
  t.equal(await post({ 'content-type': 'application/json' }), 200)
  t.equal(await post({ 'content-type': 'application/json', origin: 'http://127.0.0.1' }, '{}'), 200)
  t.equal(await post({}, 'x'.repeat(5000)), 413)
})

t.test('one reload runs at a time, and the last one asked for reads what is there by then', async t => {
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
    'fifty calls, two reloads at most',
  )
  t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /149;w=60/ })
})

t.test('a process reloads on SIGHUP, on a change and when asked, and its services run on', async t => {
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
  t.match(out(), /sk_/, 'a service that was added is started')
  t.equal((await send(`${url}/api/v1/directory-sync?tenant=a&product=b`)).status, 401)

  t.equal((await send(`${adminUrl}/reload`, { method: 'POST' })).status, 200)
  client.send(body.slice(5))
  t.match(await client.message(), { line: /^HTTP\/1.1 20[01] /, body: /ann@acme.example/ })
  client.socket.destroy()
  signal('SIGTERM')
  await waitUntil('the end', () => out().includes('Draining'))
})

t.test('a hundred reloads under load: no request fails, and nothing is left behind', async t => {
  const upstream = await startApp(t, (req, res) => req.resume() && res.end('done'))
  const gateway = await start(t, { upstream, policies: { 'limits.yaml': limits({ others: 1e6 }) } })
  const load = traffic(gateway, '/x', 64)
  const resources = () => {
    const counts: Record<string, number> = {}
    for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
    return counts
  }
  await waitUntil('load', () => load.seen.admitted > 500)
  for (let i = 0; i < 100; i += 1) {
    // Every one replaces the upstream, every other one the policy too.
    gateway.write('gateway.yaml', gatewayYaml(upstream).replace('idle: 2s', `idle: ${i + 3}s`))
    if (i % 2 === 0) gateway.write('policies/limits.yaml', limits({ others: 1e6 + i }))
    t.equal((await gateway.reloader.reload('SIGHUP')).result, 'loaded')
    const { admitted } = load.seen
    await waitUntil('requests between reloads', () => load.seen.admitted > admitted)
  }
  await load.stop()
  t.same(load.seen.failed, [])
  t.equal(load.seen.refused, 0)
  await gateway.drain()
  await waitUntil('no socket is left', () => resources().TCPSocketWrap === undefined)
})
