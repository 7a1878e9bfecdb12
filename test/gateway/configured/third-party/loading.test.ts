/** How third-party plugins are loaded, and what is reported about those that cannot be. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../../../helpers/command.js'
import { startApp } from '../../../helpers/http.js'
import { matchList } from '../../../helpers/lists.js'
import { inProject } from '../../../helpers/root.js'
import {
  folderWith,
  identifyPlugin,
  limitPlugin,
  loaded,
  misbehaving,
  problemsOf,
  rules,
  SCHEMA,
} from './written-plugins.js'

t.test(
  'plugins are loaded by path, folder or package, one or several per module, ESM or CommonJS',
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

t.test('a plugin that cannot be used is refused with its place and reason', async t => {
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
    [
      './name.mjs',
      "export default { name: 'A b', kind: 'limit' }",
      /its "name" must begin with a lowercase letter/,
    ],
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
      /does not fit: the key "mode" is reserved/,
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

t.test('a plugin name that is already taken is refused', async t => {
  const folder = folderWith(
    t,
    {
      'a.mjs': `export default ${identifyPlugin('token', '() => undefined')}`,
      'b.mjs': `export default ${identifyPlugin('token', '() => undefined')}`,
    },
    'plugins: [./a.mjs, ./b.mjs]\n',
  )
  t.matchOnly(await problemsOf(folder), [
    /plugins\[1\]: .*the name "token" of its identify plugin is taken by/,
  ])
})

t.test('check validates a plugin’s settings by its schema, and the schema command prints it', async t => {
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
  t.ok(
    JSON.parse(out).properties.rules.items.properties.units,
    'the schema for its policy files has the plugin’s keys',
  )
  t.match((await sluice(['schema', '--config', folder])).out, /^cost$/m)
})

t.test('check asks each rule’s limiter for its demand, and reports an invalid one at the rule', async t => {
  const answers = {
    windows: "({ kind: 'windows', windows: [], lease: false })",
    nothing: 'undefined',
    late: "Promise.resolve({ kind: 'slots', max: 1, ttlMs: 1000 })",
    meter: "({ kind: 'meter', quota: 5, ms: 1000, blockMs: 0 })",
    picky: "({ kind: 'slots', max: check.facts.header('x-max').length, ttlMs: 1000 })",
    none: "({ kind: 'meter', quota: check.rule.id === 'good' ? 1 : 0, ms: check.facts.path === '/none/sample' ? 1000 : 0, blockMs: 0 })",
  }
  const plugins = Object.entries(answers).map(([name, answer]) =>
    limitPlugin(name, `{ demand: check => ${answer}, applies: rule => rule.id !== 'elsewhere' }`),
  )
  const rule = (name: string) => `id: ${name}, match: ['POST /${name}/{id}'], key: [project], mode: enforce`
  const files = Object.keys(answers).map(name => [
    `policies/${name}.yaml`,
    rules(name, rule(name), ...(name === 'none' ? [rule('elsewhere')] : [])),
  ])
  const folder = folderWith(
    t,
    { 'p.mjs': `export const plugins = [${plugins.join(', ')}]`, ...Object.fromEntries(files) },
    'plugins: [./p.mjs]\n',
  )
  const { code, err } = await sluice(['check', '--config', folder])
  t.equal(code, 1)
  const told = err.split('\n').map(line => line.slice(join(folder, 'policies/').length))
  t.match(told, [
    /^late\.yaml:4:5 rules\[0\]: The plugin "late" does not say what rule "late" counts: demand\(\) must answer at once/,
    /^none\.yaml:4:5 rules\[0\]: .*"none" counts: demand\(\) must return windows, slots or a meter/,
    /^nothing\.yaml:4:5 /,
    /^windows\.yaml:4:5 /,
  ])
  t.match(err, '4 problems')
})

t.test('a plugin that throws in create() is reported at its place', async t => {
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
  t.matchOnly(await problemsOf(folder), [
    '5:18 identify[1]: The plugin "bad" could not be created: no key',
    /identify\[2\]: The plugin "late" could not be created: create\(\) must return at once an object with the function identify\(\)/,
    /observe\[0\]: The plugin "odd" could not be created: .*finished\(\)/,
  ])
  writeFileSync(
    join(folder, 'gateway.yaml'),
    'version: 1\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\nplugins: [./p.mjs]\n',
  )
  const { code, err } = await sluice(['check', '--config', folder])
  t.equal(code, 1, 'check creates limiters too')
  t.match(err, /gateway\.yaml:4:10 plugins: The plugin "cost" could not be created: no quota/)
})

t.test(
  'an identifier whose challenge or stripped header could be no field is reported at its place',
  async t => {
    const asking = (name: string, more: string) =>
      `{ name: '${name}', kind: 'identify', schema: ${SCHEMA}, create: () => ({ identify() {} }), ${more} }`
    const folder = folderWith(
      t,
      {
        'p.mjs': `export const plugins = [
        ${asking('good', "challenge: () => 'Session realm=\"a\"', strips: () => 'x-session'")}, ${asking('line', "challenge: () => 'Bearer\\r\\nx: y'")},
        ${asking('none', 'challenge: () => undefined')}, ${asking('case', "strips: () => 'X-Session'")}]`,
      },
      'plugins: [./p.mjs]\nidentify: [good, line, none, case]\n',
    )
    t.matchOnly(await problemsOf(folder), [
      /identify\[1\]: The plugin "line" could not be created: challenge\(\) must return an authentication scheme/,
      /identify\[2\]: The plugin "none" could not be created: challenge\(\)/,
      /identify\[3\]: The plugin "case" could not be created: strips\(\) must return the name of a header in lower case/,
    ])
  },
)

t.test('a command ends even when a plugin has started a timer', async t => {
  const working = (answer: string) => `create() {
    const timer = setInterval(() => {}, 60_000)
    return { ${answer}, async close() { clearInterval(timer) } } }`
  const admin = await startApp(t, (_req, res) => res.end('{"overrides":[]}'))
  const folder = folderWith(
    t,
    {
      'p.mjs': `export const plugins = [
        { name: 'keys', kind: 'identify', schema: ${SCHEMA}, ${working('identify() {}')} },
        { name: 'cost', kind: 'limit', schema: ${SCHEMA}, ${working("demand: () => ({ kind: 'slots', max: 1, ttlMs: 15000 })")} }]`,
      'policies/cost.yaml': rules('cost', 'id: c, match: [/], key: [project]'),
      'access.log': '192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "POST / HTTP/1.1" 200 12\n',
    },
    `plugins: [./p.mjs]\nidentify: [keys]\nadmin: { host: 127.0.0.1, port: ${new URL(admin).port} }\n`,
  )
  for (const [expected, ...words] of [
    [0, 'check', '--config', folder],
    [0, 'explain', 'POST', '/', '--config', folder],
    [0, 'replay', join(folder, 'access.log'), '--policies', folder],
    [2, 'diff', folder, 'no/where'],
    [0, 'health', '--config', folder],
    [0, 'overrides', '--live', folder],
  ] as const) {
    const command = [inProject('dist/gateway/cli.js'), ...words]
    const child = spawn(process.execPath, command, { stdio: 'ignore', timeout: 30_000 })
    const [status] = await once(child, 'close')
    t.equal(status, expected, words.join(' '))
  }
})

t.test('a reload says that a changed list of plugins needs a restart', async t => {
  const gateway = await misbehaving(
    t,
    [identifyPlugin('token', '() => undefined')],
    'identify: [token, host]',
  )
  const file = join(gateway.folder, 'gateway.yaml')
  const text = readFileSync(file, 'utf8')
  writeFileSync(join(gateway.folder, 'more.mjs'), `export default ${limitPlugin('cost', '{ demand() {} }')}`)
  writeFileSync(file, text.replace(/^plugins: \[/m, 'plugins: [./more.mjs, '))
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded', needsRestart: ['plugins'] })
  writeFileSync(
    join(gateway.folder, 'policies', 'cost.yaml'),
    rules('cost', 'id: c, match: [/], key: [project]'),
  )
  const refused = await gateway.reloader.reload('admin')
  t.equal(refused.result, 'refused')
  matchList(t, 'problems' in refused && refused.problems, [
    { message: /Unknown policy kind "cost"/ },
    { path: 'plugins', message: 'The list of plugins has changed. That needs a restart.' },
  ])
  writeFileSync(file, text.replace('version: 1', `version: 1\nredis: \${NOT_SET}`))
  const other = await gateway.reloader.reload('admin')
  const messages = 'problems' in other ? other.problems.map(({ message }) => message).join('\n') : ''
  t.match(messages, /NOT_SET/)
  t.notMatch(messages, /list of plugins/, 'which could not be read')
})

t.test('what a module keeps alive or ends does not decide how a command ends', async t => {
  const check = async (module: string) => {
    const folder = folderWith(t, { 'own.mjs': module }, 'plugins: [./own.mjs]\n')
    const child = spawn(process.execPath, [
      inProject('dist', 'gateway', 'cli.js'),
      'check',
      '--config',
      folder,
    ])
    t.teardown(() => child.kill('SIGKILL'))
    let out = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', text => {
        out += text
      })
    }
    const [code] = await once(child, 'close')
    return { code, out }
  }
  const busy = await check(
    `setInterval(() => {}, 1000); export default ${identifyPlugin('busy', '() => undefined')}`,
  )
  t.equal(busy.code, 0)
  t.match(busy.out, 'revision sha256:')
  const leaving = await check('process.exit(0)')
  t.equal(leaving.code, 1, 'nothing has been checked')
  t.match(
    leaving.out,
    /gateway\.yaml:\d+:\d+ plugins\[0\]: "\.\/own\.mjs" ended the process while it was loaded\./,
  )
})
