/** What becomes of plugins that others wrote and that misbehave while they run. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boundedLog } from '../../../../gateway/observe/bounded-log.js'
import { gatewayProcess, writeConfig } from '../../../helpers/gateway-process.js'
import { send, startApp } from '../../../helpers/http.js'
import { waitUntil } from '../../../helpers/wait.js'
import { identifyPlugin, limitPlugin, misbehaving, quiet, rules, SCHEMA } from './written-plugins.js'

t.test('an identifier that throws or lies has not identified anybody: the next one is asked', async t => {
  const bodies = {
    throws: '() => { throw new Error("broken") }',
    nothing: '() => { throw null }',
    promise: 'async () => { throw new Error("nobody waits") }',
    shape: '() => ({ id: "acme" })',
    plan: '() => ({ id: "acme", plan: "gold", environment: "production" })',
    id: '() => ({ id: "a b\\r\\n", plan: "growth", environment: "production" })',
    trap: '() => ({ get id() { throw new Error("trap") } })',
  }
  const names = Object.keys(bodies)
  const { post, named } = await misbehaving(
    t,
    Object.entries(bodies).map(([name, body]) => identifyPlugin(name, body)),
    `identify: [${names.join(', ')}, host]\nunknownProject: reject`,
  )
  for (let i = 0; i < 3; i++) t.equal(await post(), 200)
  t.equal(await post('/', 'nobody.localhost'), 404, 'nobody knew')
  for (const name of names) t.equal(named(name).length, 1, `${name} is named once, not with every request`)
})

t.test(
  'a limiter that throws, hangs or lies is as a store that is away: onStoreError says what follows',
  async t => {
    const granted = (reading: string) => `() => ({ granted: true, store: 'none', readings: [${reading}] })`
    const reading = "policy: 'x', quota: 1, used: 1, left: 0, violated: false"
    const made = {
      demand: '{ demand() { throw new Error("broken") } }',
      nan: "{ demand: () => ({ kind: 'windows', lease: false, windows: [{ name: 'w', quota: NaN, ms: 1000, algorithm: 'fixed-window' }] }) }",
      negative: "{ demand: () => ({ kind: 'slots', max: -1, ttlMs: 15000 }) }",
      nothing: '{ demand() {} }',
      applies: "{ applies() { throw new Error('broken') }, demand() {} }",
      later: '{ applies: async () => { throw new Error("nobody waits") }, demand() {} }',
      spend: '{ spend() { throw new Error("broken") } }',
      rejects: '{ spend: async () => { throw new Error("broken") } }',
      hangs: '{ spend: () => new Promise(() => {}) }',
      shapeless: '{ spend: () => true }',
      nanReading: `{ spend: ${granted(`{ ${reading}, resetMs: NaN }`)} }`,
      injects: `{ spend: ${granted(`{ ${reading.replace("'x'", "'x\\\\r\\\\n'")}, resetMs: 1 }`)} }`,
      recalls: '{ recall() { throw new Error("broken") }, spend() { throw new Error("broken") } }',
    }
    const kinds = Object.keys(made).map(name => name.toLowerCase())
    const policies = kinds.map(kind =>
      rules(
        kind,
        `id: ${kind}-open, match: [/open/${kind}], key: [project]`,
        `id: ${kind}-closed, match: [/closed/${kind}], key: [project], onStoreError: closed`,
        `id: ${kind}-watch, match: [/watch/${kind}], key: [project], onStoreError: closed, mode: report-only`,
      ),
    )
    const plugins = Object.entries(made).map(([name, body]) => limitPlugin(name.toLowerCase(), body))
    const { post, named } = await misbehaving(t, plugins, '', ...policies)
    for (const kind of kinds) {
      t.equal(await post(`/open/${kind}`), 200, `${kind}: let through, uncounted`)
      t.equal(await post(`/closed/${kind}`), 503, `${kind}: refused where the rule says so`)
      t.equal(await post(`/watch/${kind}`), 200, `${kind}: report-only touches nothing`)
      t.ok(named(kind).length > 0, `${kind} is named in the log`)
    }
  },
)

/** A statement that must fail with a TypeError; that it did not is thrown. */
const forbidden = (write: string) => `try { ${write}; throw new Error('possible: ' + ${JSON.stringify(write)})
  } catch (error) { if (!(error instanceof TypeError)) throw error }`

t.test('what a plugin is handed it cannot change for others', async t => {
  const { post, named, forwarded } = await misbehaving(
    t,
    [
      `{ name: 'forger', kind: 'identify', schema: ${SCHEMA}, create(settings, tools) {
        ${forbidden("tools.projects[0].plan = 'enterprise'")}
        ${forbidden('tools.projects.push({})')}
        tools.log.warn = () => {}
        return { identify(facts) { ${forbidden("facts.path = '/elsewhere'")} } } } }`,
      `{ name: 'meddler', kind: 'limit', schema: ${SCHEMA}, create(tools) {
        tools.counter.spend = () => 'unavailable'
        return { spend({ rule }) {
          ${forbidden("rule.mode = 'report-only'")}
          ${forbidden("rule.key.push('method')")}
          ${forbidden('rule.config.x = 1')}
          const readings = [{ policy: 'x', quota: 1, used: 2, left: 0, resetMs: 1000, violated: true }]
          Promise.resolve().then(() => { readings[0].policy = 'a\\r\\nb: c' })
          return { granted: false, store: 'none', readings } } } } }`,
      `{ name: 'eraser', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished(event) {
        ${forbidden('event.status = 200')}
        ${forbidden('event.verdict.outcomes.length = 0')} } }) }`,
    ],
    'identify: [forger, host]\nobserve: [eraser]',
    rules('meddler', 'id: meddled, match: [/meddled], key: [project]'),
    rules(
      'volumetric',
      'id: flood, match: [/flood], key: [project], mode: enforce, quota: { requests: 1, per: 1m }',
    ),
  )
  t.equal(await post('/as-asked'), 200)
  t.same(forwarded, ['POST /as-asked'])
  for (let i = 0; i < 2; i++) t.equal(await post('/meddled'), 429, 'its rule stays as it is written')
  t.equal(await post('/flood'), 200)
  t.equal(await post('/flood'), 429, 'the counter of others counts on')
  for (const name of ['forger', 'meddler', 'eraser']) t.same(named(name), [], `${name} changed nothing`)
})

t.test('a limiter that asks the counter for what cannot be counted is as one that throws', async t => {
  const asking = (limit: string, cost: string) =>
    `create: ({ counter }) => ({ async spend({ rule, key }) {
      const { granted, store } = await counter.spend(key, ${limit}, rule.onStoreError, ${cost})
      return { granted, store, readings: [] } } })`
  const questions = {
    'no-number': ['{ quota: NaN, windowMs: 60000, blockMs: 0 }', '1'],
    'part-second': ['{ quota: 5, windowMs: 1500, blockMs: 0 }', '1'],
    'takes-back': ['{ quota: 5, windowMs: 60000, blockMs: 0 }', '-5'],
    'no-limit': ['undefined', '1'],
  }
  const kinds = Object.keys(questions)
  const { post, named } = await misbehaving(
    t,
    Object.entries(questions).map(
      ([kind, [limit = '', cost = '']]) =>
        `{ name: '${kind}', kind: 'limit', schema: ${SCHEMA}, ${asking(limit, cost)} }`,
    ),
    '',
    ...kinds.map(kind => rules(kind, `id: ${kind}, match: [/${kind}], key: [project], onStoreError: closed`)),
  )
  for (const kind of kinds) {
    t.equal(await post(`/${kind}`), 503, kind)
    t.match(named(kind), [{ err: { message: /the counter takes a key, a limit of whole numbers/ } }])
  }
})

t.test(
  'what goes wrong after the answer harms nobody: giving back, releasing, observing, closing',
  async t => {
    const ruling =
      "{ granted: true, store: 'none', readings: [], giveBack() { throw new Error('x') }, release: async () => { throw new Error('y') } }"
    const { post, named, drain } = await misbehaving(
      t,
      [
        limitPlugin('ending', `{ spend: () => (${ruling}), close: () => new Promise(() => {}) }`),
        limitPlugin(
          'refuses',
          "{ spend: () => ({ granted: false, store: 'none', readings: [{ policy: 'refuses', quota: 1, used: 2, left: 0, resetMs: 1000, violated: true }] }) }",
        ),
        `{ name: 'watcher', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished() { throw new Error('w') }, close() { throw new Error('c') } }) }`,
        `{ name: 'slow-watcher', kind: 'observe', schema: ${SCHEMA}, create: () => ({ async finished() { throw new Error('w') } }) }`,
      ],
      'observe: [watcher, slow-watcher]',
      rules('ending', 'id: ending, match: [/**], key: [project]'),
      rules('refuses', 'id: refuses, match: [/refused], key: [project]'),
    )
    t.equal(await post('/'), 200)
    t.equal(await post('/refused'), 429)
    for (const name of ['ending', 'watcher', 'slow-watcher']) {
      await waitUntil(`${name} is named in the log`, () => named(name).length > 0)
    }
    await drain()
    t.match(named('ending').at(-1), { msg: 'a plugin did not close' })
  },
)

t.test('a promise that a plugin leaves alone does not end the process', async t => {
  const identify =
    '() => { Promise.reject(new Error("left alone")); setTimeout(async () => { throw new Error("later") }); return undefined }'
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${await startApp(t, (_req, res) => res.end('done'))}" } }
routes: [{ path: /**, upstream: app }]
plugins: [./p.mjs]
identify: [careless, host]
`,
    {},
  )
  writeFileSync(join(folder, 'p.mjs'), `export default ${identifyPlugin('careless', identify)}`)
  const { url, out } = await gatewayProcess(t, folder)
  for (let i = 0; i < 3; i++) t.equal((await send(url)).status, 200)
  t.match(out(), /a promise failed that nobody waited for/)
})

t.test('an observer hears of every request, and of its verdict', async t => {
  const heard: Record<string, unknown>[] = []
  Object.assign(globalThis, { heardOf: (event: Record<string, unknown>) => heard.push(event) })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'heardOf'))
  const { post } = await misbehaving(
    t,
    [
      `{ name: 'audit', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished: event => globalThis.heardOf(event) }) }`,
    ],
    'observe: [audit]',
    rules('in-flight', 'id: one, match: [/**], key: [project]'),
  )
  await post('/x')
  await waitUntil('it heard', () => heard.length === 1)
  t.match(heard[0], { method: 'POST', status: 200, project: { id: 'acme' }, verdict: { allowed: true } })
})

t.test('a fault that comes with every request fills no log', async t => {
  const lines: object[] = []
  let now = 0
  const log = boundedLog({ ...quiet, warn: (fields, msg) => lines.push({ ...fields, msg }) }, () => now)
  for (let i = 0; i < 1000; i++) log.warn({ plugin: 'a', rule: 'r' }, 'a limiter failed')
  log.warn({ plugin: 'b', rule: 'r' }, 'a limiter failed')
  t.equal(lines.length, 2)
  now = 10_000
  log.warn({ plugin: 'a', rule: 'r' }, 'a limiter failed')
  t.match(lines[2], { plugin: 'a', repeated: 999 })
  for (let i = 0; i < 10_000; i++) log.warn({ plugin: 'c', rule: `r${i}` }, 'a limiter failed')
  t.ok(lines.length < 300, 'whatever the number of different ones')
})
