/** What happens to third-party plugins that misbehave at run time. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boundedLog } from '../../../../gateway/observe/log-limits.js'
import { gatewayProcess, writeConfig } from '../../../helpers/gateway-process.js'
import { send, startApp } from '../../../helpers/http.js'
import { matchList } from '../../../helpers/lists.js'
import { waitUntil } from '../../../helpers/wait.js'
import { identifyPlugin, limitPlugin, misbehaving, quiet, rules, SCHEMA } from './written-plugins.js'

t.test(
  'an identifier that throws or returns nonsense identifies no project, and the next one is asked',
  async t => {
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
    t.equal(await post('/', 'nobody.localhost'), 404, 'no identifier knew the project')
    for (const name of names) t.equal(named(name).length, 1, `${name} is logged once, not with every request`)
  },
)

/** A limiter that answers well at load, when a sample is asked: nonsense there is refused with the configuration. */
function inTraffic(made: string): string {
  return `(made => ({
    applies: (rule, facts) => facts.id === 'sample' || (made.applies?.(rule, facts) ?? true),
    demand: check => check.key === 'sample' ? { kind: 'slots', max: 1, ttlMs: 15000 } : made.demand(check),
  }))(${made})`
}

t.test('a limiter that throws, hangs or asks for nonsense is handled by its rule’s onStoreError', async t => {
  const meter = (numbers: string) => `{ demand: () => ({ kind: 'meter', ${numbers} }) }`
  const made = {
    throws: '{ demand() { throw new Error("broken") } }',
    nothing: '{ demand() {} }',
    shapeless: '{ demand: () => true }',
    rejects: '{ demand: async () => { throw new Error("nobody waits") } }',
    hangs: '{ demand: () => new Promise(() => {}) }',
    trap: '{ demand: () => ({ get kind() { throw new Error("trap") } }) }',
    applies: "{ applies() { throw new Error('broken') }, demand() {} }",
    later: '{ applies: async () => { throw new Error("nobody waits") }, demand() {} }',
    nan: "{ demand: () => ({ kind: 'windows', lease: false, windows: [{ name: 'w', quota: NaN, ms: 1000, algorithm: 'fixed-window' }] }) }",
    injects:
      "{ demand: () => ({ kind: 'windows', lease: false, windows: [{ name: 'x\\r\\n', quota: 1, ms: 1000, algorithm: 'fixed-window' }] }) }",
    negative: "{ demand: () => ({ kind: 'slots', max: -1, ttlMs: 15000 }) }",
    'no-number': meter('quota: NaN, ms: 60000, blockMs: 0'),
    'part-ms': meter('quota: 5, ms: 1.5, blockMs: 0'),
    'takes-back': meter('quota: 5, ms: 60000, blockMs: 0, cost: -5'),
    'costs-all': meter('quota: 5, ms: 60000, blockMs: 0, cost: 6'),
    'no-block': meter('quota: 5, ms: 60000'),
  }
  const kinds = Object.keys(made)
  const policies = kinds.map(kind =>
    rules(
      kind,
      `id: ${kind}-open, match: [/open/${kind}], key: [project]`,
      `id: ${kind}-closed, match: [/closed/${kind}], key: [project], onStoreError: closed`,
      `id: ${kind}-watch, match: [/watch/${kind}], key: [project], onStoreError: closed, mode: report-only`,
    ),
  )
  const plugins = Object.entries(made).map(([name, body]) => limitPlugin(name, inTraffic(body)))
  const { post, named } = await misbehaving(t, plugins, '', ...policies)
  for (const kind of kinds) {
    t.equal(await post(`/open/${kind}`), 200, `${kind}: with open the request is admitted uncounted`)
    t.equal(await post(`/closed/${kind}`), 503, `${kind}: with closed the request is refused`)
    t.equal(await post(`/watch/${kind}`), 200, `${kind}: report-only changes nothing`)
    t.ok(named(kind).length > 0, `${kind} is named in the log`)
  }
})

t.test(
  'a cost after the answer that is no number counts as one unit, and its plugin is named in the log',
  async t => {
    const made = {
      throws: '() => { throw new Error("broken") }',
      rejects: 'async () => { throw new Error("nobody waits") }',
      hangs: '() => new Promise(() => {})',
      nothing: '() => {}',
      text: '() => "2"',
      nan: '() => NaN',
      negative: '() => -5',
    }
    const kinds = Object.keys(made)
    const plugins = Object.entries(made).map(([name, body]) =>
      limitPlugin(
        name,
        `{ demand: () => ({ kind: 'meter', quota: 2, ms: 60000, blockMs: 0, afterAnswer: ${body} }) }`,
      ),
    )
    const fine =
      "{ demand: () => ({ kind: 'meter', quota: 2, ms: 60000, blockMs: 0, afterAnswer: () => 1.5 }) }"
    const { post, named } = await misbehaving(
      t,
      [...plugins, limitPlugin('fine', fine)],
      '',
      ...[...kinds, 'fine'].map(kind => rules(kind, `id: ${kind}, match: [/${kind}], key: [project]`)),
    )
    for (const kind of kinds) {
      const statuses = [await post(`/${kind}`), await post(`/${kind}`), await post(`/${kind}`)]
      t.same(statuses, [200, 200, 429], `${kind}: each request costs one`)
      matchList(t, named(kind), [{ msg: 'a limiter failed', rule: kind }])
    }
    t.same([await post('/fine'), await post('/fine')], [200, 429], 'a fraction is rounded up')
    t.same(named('fine'), [])
  },
)

t.test('a limiter’s demand is charged only when the whole request is admitted', async t => {
  const cost = "{ demand: () => ({ kind: 'meter', quota: 5, ms: 60000, blockMs: 0, cost: 2 }) }"
  const { post } = await misbehaving(
    t,
    [limitPlugin('units', cost)],
    '',
    rules('units', 'id: budget, match: [/**], key: [project]'),
    rules(
      'volumetric',
      'id: flood, match: [/flood], key: [project], mode: enforce, quota: { requests: 1, per: 1m }',
    ),
  )
  t.equal(await post('/flood'), 200)
  for (let i = 0; i < 3; i++) t.equal(await post('/flood'), 429)
  t.equal(await post('/else'), 200, 'requests the flood rule refused did not charge the budget')
  t.equal(await post('/else'), 429, 'a request for two units is refused when one is left')
})

t.test('a plugin that fails while observing or closing affects no request', async t => {
  const { post, named, drain } = await misbehaving(
    t,
    [
      limitPlugin(
        'ending',
        "{ demand: () => ({ kind: 'slots', max: 1, ttlMs: 15000 }), close: () => new Promise(() => {}) }",
      ),
      `{ name: 'watcher', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished() { throw new Error('w') }, close() { throw new Error('c') } }) }`,
      `{ name: 'slow-watcher', kind: 'observe', schema: ${SCHEMA}, create: () => ({ async finished() { throw new Error('w') } }) }`,
    ],
    'observe: [watcher, slow-watcher]',
    rules('ending', 'id: ending, match: [/**], key: [project]'),
  )
  for (let i = 0; i < 3; i++) t.equal(await post('/'), 200, 'the slot is given back')
  for (const name of ['watcher', 'slow-watcher']) {
    await waitUntil(`${name} is named in the log`, () => named(name).length > 0)
  }
  await drain()
  t.match(named('ending').at(-1), { msg: 'a plugin did not close' })
})

t.test('an unhandled rejection in a plugin does not end the process', async t => {
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
  t.match(out(), /a promise was rejected and nothing handled it/)
})

t.test('an observer gets every request with its verdict', async t => {
  const heard: Record<string, unknown>[] = []
  Object.assign(globalThis, { heardOf: (event: Record<string, unknown>) => heard.push(event) })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'heardOf'))
  const { post } = await misbehaving(
    t,
    [
      `{ name: 'audit', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished: event => globalThis.heardOf(event) }) }`,
    ],
    'observe: [audit]',
    rules(
      'volumetric',
      'id: two, match: [/**], key: [project], mode: enforce, quota: { requests: 2, per: 1m }',
    ),
  )
  for (const status of [200, 200, 429]) t.equal(await post('/x'), status)
  await waitUntil('the event', () => heard.length >= 3)
  const request = { method: 'POST', project: { id: 'acme' } }
  matchList(t, heard, [
    { ...request, status: 200, verdict: { allowed: true } },
    { ...request, status: 200, verdict: { allowed: true } },
    { ...request, status: 429, verdict: { allowed: false } },
  ])
})

t.test('a fault that repeats with every request does not fill the log', async t => {
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
  t.ok(lines.length < 300, 'the number of different faults is bounded too')
})
