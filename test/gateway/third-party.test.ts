/** Plugins that others wrote: how they come in, what is said of those that cannot, and what becomes of those that misbehave. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { formatProblem } from '../../config/problem.js'
import { type Loaded, load } from '../../gateway/load.js'
import { boundedLog } from '../../gateway/observe/bounded-log.js'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const PROJECTS =
  'version: 1\nprojects: [{ id: acme, plan: growth, environment: production, hosts: [acme.localhost] }]\n'

const SCHEMA = "{ type: 'object', properties: {}, required: [] }"
const identifyPlugin = (name: string, identify: string, schema = SCHEMA) =>
  `{ name: '${name}', kind: 'identify', schema: ${schema}, create: () => ({ identify: ${identify} }) }`
const limitPlugin = (name: string, made: string, schema = SCHEMA) =>
  `{ name: '${name}', kind: 'limit', schema: ${schema}, create: () => (${made}) }`
const rules = (kind: string, ...lines: string[]) =>
  `version: 1\nkind: ${kind}\nrules:\n${lines.map(line => `  - { ${line} }\n`).join('')}`

function folderWith(t: Test, files: Record<string, string>, settings: string): string {
  const folder = t.testdir({ policies: {} })
  const gateway = `version: 1\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n${settings}`
  for (const [name, text] of Object.entries({
    'gateway.yaml': gateway,
    'projects.yaml': PROJECTS,
    ...files,
  })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

async function loaded(folder: string): Promise<Loaded> {
  const found = await load(folder, {}, quiet)
  if ('problems' in found) throw new Error(found.problems.map(formatProblem).join('\n'))
  return found
}

/** The sentences, each after its place in gateway.yaml. */
async function problemsOf(folder: string): Promise<string[]> {
  const found = await load(folder, {}, quiet)
  return 'problems' in found
    ? found.problems.map(problem => formatProblem(problem).slice(join(folder, 'gateway.yaml').length + 1))
    : []
}

t.test(
  'plugins come by path, by folder and by package, one or several from a module, ESM or not',
  async t => {
    const folder = folderWith(
      t,
      {
        'by-path.mjs': `export default ${identifyPlugin('by-path', '() => undefined')}`,
        'folder/package.json': '{ "type": "module", "exports": { ".": { "import": "./main.js" } } }',
        'folder/main.js': `export const plugins = [${identifyPlugin('one', '() => undefined')}, ${limitPlugin('two', '{ demand() {} }')}]`,
        'node_modules/esm-only/package.json': '{ "type": "module", "exports": { "import": "./x.js" } }',
        'node_modules/esm-only/x.js': `export const plugin = ${identifyPlugin('esm', '() => undefined')}`,
        'node_modules/@acme/old/package.json': '{ "main": "lib/old.js" }',
        'node_modules/@acme/old/lib/old.js': `module.exports = ${identifyPlugin('old', '() => undefined')}`,
      },
      'plugins: [./by-path.mjs, ./folder, esm-only, "@acme/old"]\nidentify: [host, by-path, one, esm, { plugin: old }]\n',
    )
    const { config, plugins, compiled } = await loaded(folder)
    t.same(config.gateway.plugins, plugins.names)
    t.same(
      compiled.identifiers.map(({ name }) => name),
      ['host', 'by-path', 'one', 'esm', 'old'],
    )
    t.ok(plugins.limit.some(({ name }) => name === 'two'))
  },
)

t.test('a plugin that cannot be used is refused with its place and its reason', async t => {
  const files: [name: string, text: string | undefined, sentence: RegExp][] = [
    ['./nowhere.js', undefined, /There is no plugin at "\.\/nowhere\.js"/],
    ['sluice-nowhere', undefined, /No package "sluice-nowhere" is installed beside this file\. Install it/],
    ['./empty.mjs', 'export const x = 1', /exports no plugin\. Export one as default/],
    ['./number.mjs', 'export default 7', /it must be a map that definePlugin takes/],
    [
      './kind.mjs',
      "export default { name: 'a', kind: 'limiter', schema: {}, create() {} }",
      /the "kind" of "a" must be identify, limit or observe/,
    ],
    ['./name.mjs', "export default { name: 'A b', kind: 'limit' }", /its "name" must be a small letter/],
    ['./make.mjs', "export default { name: 'a', kind: 'limit', schema: {} }", /"create" of "a" must be a f/],
    ['./throws.mjs', "throw new Error('no\\nlicence')", /"\.\/throws\.mjs" could not be loaded: no$/],
    ['./null.mjs', 'throw null', /could not be loaded: null/],
    ['./syntax.mjs', 'export default {', /could not be loaded: Unexpected end of input/],
    ['./missing.mjs', "import 'not-there'", /could not be loaded: Cannot find package 'not-there'/],
    [
      './taken.mjs',
      `export default ${limitPlugin('volumetric', '{ demand() {} }')}`,
      /the name "volumetric" of its limit plugin is taken by a built-in one/,
    ],
    [
      './reserved.mjs',
      `export default ${limitPlugin('projects', '{ demand() {} }')}`,
      /a policy kind cannot be called "projects"/,
    ],
    [
      './key.mjs',
      `export default ${limitPlugin('a', '{}', "{ type: 'object', properties: { mode: {} } }")}`,
      /does not fit: the key "mode" has its meaning already/,
    ],
    [
      './schema.mjs',
      `export default ${identifyPlugin('a', '() => undefined', "{ type: 'object', properties: { x: { type: 'txt' } } }")}`,
      /the schema of its identify plugin "a" does not fit: .*type/,
    ],
  ]
  const folder = folderWith(
    t,
    Object.fromEntries(files.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]]))),
    `plugins:\n${files.map(([name]) => `  - ${name}\n`).join('')}`,
  )
  const problems = await problemsOf(folder)
  t.equal(problems.length, files.length, problems.join('\n'))
  for (const [i, [name, , sentence]] of files.entries()) {
    t.match(problems[i], new RegExp(`^${i + 5}:5 plugins\\[${i}\\]: `), name)
    t.match(problems[i], sentence, name)
  }
})

t.test('the name of a plugin is taken once, by whom is said', async t => {
  const folder = folderWith(
    t,
    {
      'a.mjs': `export default ${identifyPlugin('token', '() => undefined')}`,
      'b.mjs': `export default ${identifyPlugin('token', '() => undefined')}`,
    },
    'plugins: [./a.mjs, ./b.mjs]\n',
  )
  t.match(await problemsOf(folder), [/plugins\[1\]: .*the name "token" of its identify plugin is taken by/])
})

t.test('a plugin’s settings are checked as the built-in ones are, by check and by the editor', async t => {
  const schema =
    "{ type: 'object', properties: { units: { type: 'integer', minimum: 1 } }, required: ['units'] }"
  const folder = folderWith(
    t,
    {
      'p.mjs': `export const plugins = [
        ${limitPlugin('cost', '{ demand() {} }', schema)},
        ${identifyPlugin('token', '() => undefined', "{ type: 'object', properties: { claim: { type: 'string', default: 'sub' } } }")},
        { name: 'audit', kind: 'observe', schema: ${SCHEMA}, create: () => ({ finished() {} }) }]`,
      'policies/cost.yaml': rules('cost', 'id: a, match: [/a], key: [project], unit: 3'),
    },
    'plugins: [./p.mjs]\nidentify: [tokn, { plugin: token, clam: x }]\nobserve: [audit]\n',
  )
  const { code, err } = await sluice(['check', '--config', folder])
  t.equal(code, 1)
  t.match(err, /identify\[0\]: Must be .*token, but it is "tokn"\. Did you mean "token"\?/)
  t.match(err, /identify\[1\]\.clam: Unknown key "clam"\. Did you mean "claim"\?/)
  t.match(err, /rules\[0\]\.unit: Unknown key "unit"\. Did you mean "units"\?/)

  const { out } = await sluice(['schema', 'cost', '--config', folder])
  t.ok(JSON.parse(out).properties.rules.items.properties.units, 'the editor’s schema of its policy files')
  t.match((await sluice(['schema', '--config', folder])).out, /^cost$/m)
})

t.test('a plugin that throws while it is made is a problem at its place', async t => {
  const create = (kind: string, name: string, body: string) =>
    `{ name: '${name}', kind: '${kind}', schema: ${SCHEMA}, create() { ${body} } }`
  const folder = folderWith(
    t,
    {
      'p.mjs': `export const plugins = [
        ${create('identify', 'bad', "throw new Error('no key')")}, ${create('identify', 'late', 'return Promise.reject(new Error())')},
        ${create('observe', 'odd', 'return {}')}, ${create('limit', 'cost', "throw new Error('no quota')")}]`,
    },
    'plugins: [./p.mjs]\nidentify: [host, bad, late]\nobserve: [odd]\n',
  )
  t.match(await problemsOf(folder), [
    '5:18 identify[1]: The plugin "bad" could not be created: no key',
    /identify\[2\]: The plugin "late" could not be created: create\(\) must return at once an object with the function identify\(\)/,
    /observe\[0\]: The plugin "odd" could not be created: .*finished\(\)/,
  ])
  writeFileSync(
    join(folder, 'gateway.yaml'),
    'version: 1\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\nplugins: [./p.mjs]\n',
  )
  const { code, err } = await sluice(['check', '--config', folder])
  t.equal(code, 1, 'a limiter is tried out, too')
  t.match(err, /gateway\.yaml:4:10 plugins: The plugin "cost" could not be created: no quota/)
})

/** A gateway whose plugins are written in JavaScript; rules by the names of limit plugins. */
async function misbehaving(t: Test, plugins: string[], settings: string, ...policies: string[]) {
  const folder = t.testdir({ 'p.mjs': `export const plugins = [${plugins.join(', ')}]` })
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    settings: `plugins: [${join(folder, 'p.mjs')}]\n${settings}`,
    policies: Object.fromEntries(policies.map((text, i) => [`${i}.yaml`, text])),
  })
  const post = async (path = '/', host = 'acme.localhost') =>
    (await send(gateway.url + path, { method: 'POST', headers: { host } })).status
  const named = (plugin: string) => gateway.lines.filter(line => line.plugin === plugin)
  return { ...gateway, post, named }
}

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

t.test('check ends although a plugin has begun to work', async t => {
  const folder = folderWith(
    t,
    {
      'p.mjs': `export default { name: 'keys', kind: 'identify', schema: ${SCHEMA}, create() {
        const timer = setInterval(() => {}, 60_000)
        return { identify() {}, async close() { clearInterval(timer) } } } }`,
    },
    'plugins: [./p.mjs]\nidentify: [keys]\n',
  )
  const { status } = spawnSync(
    process.execPath,
    [inProject('dist/gateway/cli.js'), 'check', '--config', folder],
    {
      timeout: 20_000,
    },
  )
  t.equal(status, 0)
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

t.test('a changed list of plugins needs a restart, which a reload says', async t => {
  const gateway = await misbehaving(
    t,
    [identifyPlugin('token', '() => undefined')],
    'identify: [token, host]',
  )
  const file = join(gateway.folder, 'gateway.yaml')
  const { readFileSync } = await import('node:fs')
  const text = readFileSync(file, 'utf8')
  writeFileSync(join(gateway.folder, 'more.mjs'), `export default ${limitPlugin('cost', '{ demand() {} }')}`)
  writeFileSync(file, text.replace(/^plugins: \[/m, 'plugins: [./more.mjs, '))
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded', needsRestart: ['plugins'] })
  writeFileSync(
    join(gateway.folder, 'policies', 'cost.yaml'),
    rules('cost', 'id: c, match: [/], key: [project]'),
  )
  t.match(await gateway.reloader.reload('admin'), {
    result: 'refused',
    problems: [
      { message: /Unknown policy kind "cost"/ },
      { path: 'plugins', message: 'The list of plugins has changed. That needs a restart.' },
    ],
  })
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
