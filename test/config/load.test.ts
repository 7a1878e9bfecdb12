import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { expand } from '../../config/environment.js'
import { type Config, isProjectLimits, loadConfig, problemAt } from '../../config/load.js'
import { formatPath, formatProblem, nearest } from '../../config/problem.js'
import type { Quota } from '../../config/words/quota.js'
import { parseYaml } from '../../config/yaml.js'
import { compile } from '../../gateway/configured/compile.js'
import { builtIn, pluginSchemas } from '../../gateway/plugins.js'

const BAD = 'test/fixtures/bad'
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** What `sluice check` would print: the loader's problems, then the matcher's. */
function problemsOf(path: string, env: NodeJS.ProcessEnv = {}): string[] {
  const loaded = loadConfig(path, { env, plugins: pluginSchemas })
  const checked = 'config' in loaded ? compile(loaded.config, builtIn, silent) : loaded
  return 'problems' in checked ? checked.problems.map(formatProblem) : []
}

function load(path: string, env: NodeJS.ProcessEnv = {}): Config {
  const loaded = loadConfig(path, { env, plugins: pluginSchemas })
  if ('config' in loaded) return loaded.config
  throw new Error(loaded.problems.map(formatProblem).join('\n'))
}

function folderWith(dir: string, files: Record<string, string | Buffer>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
  return dir
}

const GATEWAY = 'version: 1\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n'
const PROJECTS = 'version: 1\nprojects: []\n'
const SOUND = { 'gateway.yaml': GATEWAY, 'projects.yaml': PROJECTS, 'policies/none.txt': '' }

t.test('every wrong configuration is reported in exactly the sentences of its expected.txt', async t => {
  const names = readdirSync(BAD).filter(name => name !== 'base')
  t.ok(names.length > 30, 'the wrong configurations were found')
  for (const name of names) {
    const expected = readFileSync(join(BAD, name, 'expected.txt'), 'utf8')
      .trimEnd()
      .split('\n')
    t.same(problemsOf(join(BAD, name)), expected, name)
  }
  t.same(problemsOf(join(BAD, 'base')), [], 'the configuration that the wrong ones vary is good')
})

t.test('the problems of all files are reported at once, in order of file and line', async t => {
  const dir = folderWith(t.testdir(), {
    'gateway.yaml': `${GATEWAY}cors: ehco\ndrain: soon\n`,
    'projects.yaml': 'version: 1\nprojects:\n  - { id: a, plan: free, environment: production }\n',
    'policies/a.yaml': 'version: 1\nkind: in-flight\nrules: [{ id: A, match: [/a], key: [project] }]\n',
    'policies/b.yaml': 'version: 1\nversion: 1\n',
  })
  const places = problemsOf(dir).map(line => line.slice(dir.length + 1).split(' ')[0])
  t.same(places, [
    'gateway.yaml:4:7',
    'gateway.yaml:5:8',
    'policies/a.yaml:3:15',
    'policies/b.yaml:2:1',
    'projects.yaml:3:20',
  ])
})

t.test('the shipped configuration has every row of the limit tables and every in-flight rule', async t => {
  const config = load('config/gateway.yaml', { PORT: '9999' })
  t.equal(config.gateway.listen.port, 9999)
  t.equal(config.gateway.admin.port, 8081)
  t.equal(config.gateway.redis, '')
  t.same(config.gateway.store, { deadline: 25, instances: 1, onError: 'local' })
  t.same(config.gateway.identify, [{ plugin: 'host' }])
  t.match(config.projects[0], {
    id: 'acme-production',
    plan: 'growth',
    apiKeyHashes: { length: 0 },
    paths: { length: 0 },
  })

  const [inFlight, limits] = config.policies
  if (!limits || !isProjectLimits(limits)) return t.fail('project-limits.yaml is not there')
  t.equal(Object.keys(limits.document.buckets).length, 13)
  const table = limits.document.limits.map(({ quotas }) =>
    Object.fromEntries(
      Object.entries(quotas).map(([name, quota]) => {
        const { burst, sustained } = quota as Quota
        return [name, [burst, sustained]]
      }),
    ),
  )
  const tokens = ['sessions-whoami', 'oauth2-introspect', 'relation-tuples-check']
  const writes = [
    'identities-list',
    'identities-create',
    'identities-patch',
    'admin-recovery',
    'registration',
  ]
  const flows = ['recovery', 'settings', 'verification', 'scim']
  const all = (names: string[], quota: number[]) => Object.fromEntries(names.map(name => [name, quota]))
  t.strictSame(table, [
    { ...all(tokens, [10, 300]), ...all([...writes, ...flows], [1, 10]), 'catch-all': [5, 150] },
    {
      ...all(tokens, [80, 1800]),
      'identities-list': [10, 300],
      'admin-recovery': [10, 30],
      scim: [10, 300],
      'catch-all': [40, 900],
    },
    {
      ...all(tokens, [800, 18000]),
      'identities-list': [20, 600],
      'admin-recovery': [10, 300],
      scim: [10, 300],
      'catch-all': [400, 9000],
    },
    {
      ...all(tokens, [1200, 36000]),
      'identities-list': [60, 1200],
      'admin-recovery': [20, 600],
      scim: [20, 600],
      'catch-all': [800, 18000],
    },
  ])

  const rules = inFlight && !isProjectLimits(inFlight) ? inFlight.document.rules : []
  t.strictSame(
    rules.map(({ match, mode, key }) => [match.join(', '), mode, key.join('+')]),
    [
      ['POST /admin/identities, PATCH /admin/identities', 'enforce', 'project+full-path'],
      [
        'PUT /admin/identities/{id}, PATCH /admin/identities/{id}, DELETE /admin/identities/{id}',
        'enforce',
        'project+full-path',
      ],
      ['DELETE /admin/identities/{id}/credentials/{type}', 'enforce', 'project+full-path'],
      ['DELETE /admin/identities/{id}/sessions', 'enforce', 'project+full-path'],
      ['DELETE /admin/sessions/{id}', 'report-only', 'project+full-path'],
      ['PATCH /admin/sessions/{id}/extend', 'report-only', 'project+full-path'],
      ['POST /self-service/recovery', 'report-only', 'project+path+email-or-flow'],
    ],
  )
  t.ok(rules.every(rule => rule.max === 1 && rule.slotTtl === 15_000 && rule.missing === 'skip'))
  t.same(problemsOf('config', {}), [], 'the shipped configuration compiles')
})

t.test('the policy files that the documentation shows load without problems', async t => {
  const pages = ['docs/policies.md', 'docs/endpoint-limits.md']
    .map(page => readFileSync(page, 'utf8'))
    .join('\n')
  // Files shown in a folder of their own are a whole configuration.
  const shown = [...pages.matchAll(/```yaml\n# (?:([\w-]+)\/)??((?:policies\/)?[\w-]+\.yaml)\n([^`]*)```/g)]
  const folders = new Map<string, Record<string, string>>()
  for (const [, folder = '', name = '', text = ''] of shown) {
    folders.set(folder, { ...folders.get(folder), [name]: text })
  }
  t.ok(Object.keys(folders.get('') ?? {}).length >= 4, 'the pages show at least four kinds of policy files')
  const dir = t.testdir()
  const ACME = {
    'projects.yaml': 'version: 1\nprojects: [{ id: acme, plan: growth, environment: production }]\n',
  }
  for (const [folder, files] of folders) {
    t.same(problemsOf(folderWith(join(dir, folder || 'kinds'), { ...SOUND, ...ACME, ...files })), [], folder)
  }
  t.ok(folders.get('own-plans')?.['projects.yaml'], 'the pages show projects with plans of their own')
})

t.test('settings that are left out get their defaults', async t => {
  const dir = folderWith(t.testdir(), SOUND)
  t.match(load(join(dir, 'gateway.yaml')).gateway, {
    listen: { host: '127.0.0.1', port: 8080 },
    identify: [{ plugin: 'host' }],
    unknownProject: 'developer',
    rateLimitFields: 'both',
    cors: 'echo',
    retryJitter: 10,
    drain: 10_000,
    log: { decisions: 'refused' },
    plugins: { length: 0 },
  })
})

t.test('environment variables fill in scalars and nothing else', async t => {
  const value = (text: string, env: NodeJS.ProcessEnv) => {
    const expanded = expand(text, env)
    return 'value' in expanded ? expanded.value : expanded
  }
  /* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references, not templates. */
  t.equal(value('${PORT:-8080}', {}), 8080, 'a default that is a number becomes a number')
  t.equal(
    value('${PORT:-8080}', { PORT: '' }),
    8080,
    'an empty variable counts as unset where there is a default',
  )
  t.equal(value('${ON}', { ON: 'true' }), true)
  t.equal(value('http://${HOST}:${PORT:-80}', { HOST: 'a' }), 'http://a:80')
  t.equal(value('${A}', { A: '${B}' }), '${B}', 'the value of a variable is not expanded again')
  t.equal(value('${A}', { A: '00012' }), '00012', 'digits with leading zeros stay text')
  t.match(value('${A}', {}), { fault: /A is not set/ })
  const dir = folderWith(t.testdir(), { ...SOUND, secret: 'redis://:hunter2@localhost\n' })
  t.equal(value('${REDIS}', { REDIS_FILE: join(dir, 'secret') }), 'redis://:hunter2@localhost')
  t.equal(
    value('${REDIS:-none}', { REDIS: '', REDIS_FILE: join(dir, 'secret') }),
    'redis://:hunter2@localhost',
  )
  t.match(value('${REDIS}', { REDIS: 'a', REDIS_FILE: join(dir, 'secret') }), {
    fault: 'Both REDIS and REDIS_FILE are set. Set only one of them.',
  })
  folderWith(dir, { empty: ' \n', bytes: 'a\0b' })
  t.match(value('${REDIS:-}', { REDIS_FILE: join(dir, 'empty') }), { fault: /REDIS_FILE is empty/ })
  t.match(value('${REDIS:-}', { REDIS_FILE: join(dir, 'bytes') }), { fault: /REDIS_FILE is not a text file/ })
  t.match(value('${REDIS}', { REDIS_FILE: join(dir, 'nowhere') }), {
    fault: /REDIS_FILE cannot be read \(ENOENT/,
  })

  folderWith(dir, {
    'gateway.yaml': `${GATEWAY}projects: "\${R}"\ncors: \${C}\n`,
    'x\ncors: none': PROJECTS,
  })
  /* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references, not templates. */
  t.equal(
    load(dir, { R: 'x\ncors: none', C: 'echo' }).gateway.cors,
    'echo',
    'the value of a variable cannot add a key',
  )
  const shown = problemsOf(dir, { R: 'x\ncors: none', C: 'hunter3' }).join('\n')
  t.match(
    shown,
    /gateway.yaml:5:7 cors: Must be echo or none\. The environment variable C holds something else\./,
  )
  t.notMatch(shown, /hunter/, 'the value of a variable may be a secret and is not quoted')
})

t.test('hostile files are refused quickly', async t => {
  const dir = folderWith(t.testdir(), SOUND)
  const sentences = (text: string | Buffer) => {
    folderWith(dir, { 'projects.yaml': text })
    const start = process.cpuUsage()
    const found = problemsOf(dir)
    t.ok(process.cpuUsage(start).user < 15_000_000, 'the file is refused in bounded time')
    return found.map(line => line.slice(line.indexOf(': ') + 2))
  }
  const MIB = 1024 * 1024
  t.same(sentences('#'.repeat(MIB + 1)), [
    'The file is larger than 1 MiB. Policies may be split into several files.',
  ])
  for (const nest of ['[', '{a: ', '- ', '? ', ': ', '- &a ']) {
    t.same(sentences(nest.repeat(MIB / nest.length)), ['Nested deeper than 64 levels.'], nest)
  }
  const stairs = Array.from({ length: 1400 }, (_, i) => `${' '.repeat(i)}a:\n`).join('')
  t.same(sentences(stairs), ['Nested deeper than 64 levels.'])
  const wide = `version: 1\nprojects: []\n${Array.from({ length: 60_000 }, (_, i) => `k${i}: 1\n`).join('')}`
  t.equal(sentences(wide).length, 60_000, 'every unknown key is reported')
  const aliased = `version: 1\nprojects:\n- &a [${'x,'.repeat(9000)}]\n${'- *a\n'.repeat(90)}`
  t.match(sentences(aliased)[0], /Aliases stand for more than 10000 values/)
})

t.test('any text is either parsed or refused, and never crashes the parser', async () => {
  const piece = fc.constantFrom(
    'a',
    ': ',
    '\n',
    '  ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    '*a',
    '&a ',
    '!',
    '|\n',
    '"',
    "'",
    '#',
    '? ',
    '%',
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 60 }).map(all => all.join('')),
  )
  fc.assert(
    fc.property(text, written => {
      const { data, faults, locate } = parseYaml(written, value => ({ value }))
      for (const { line, col } of faults) if (line < 1 || col < 1) return false
      return (data !== undefined || faults.length > 0) && locate(['a', 0, 'b']).line >= 1
    }),
    { numRuns: 500 },
  )
})

t.test('a duration that is used through an alias is parsed correctly at each place', async t => {
  const dir = folderWith(t.testdir(), {
    ...SOUND,
    'policies/a.yaml':
      'version: 1\nkind: in-flight\nrules:\n' +
      '  - { id: a, match: [POST /a], key: &k [project], slotTtl: &ttl 2s }\n' +
      '  - { id: b, match: [POST /b], key: *k, slotTtl: *ttl }\n',
  })
  const [policy] = load(dir).policies
  t.match(policy?.document, { rules: [{ slotTtl: 2000 }, { slotTtl: 2000, key: ['project'] }] })
})

t.test('a problem that a later check finds is reported at the place of its value', async t => {
  const config = load(join(BAD, 'base'))
  const file = `${BAD}/base/policies/project-limits.yaml`
  const at = (...path: (string | number)[]) => formatProblem(problemAt(config, file, path, 'Sentence.'))
  t.equal(at('buckets', 'scim', 0), `${file}:4:10 buckets.scim[0]: Sentence.`)
  t.equal(
    at('limits', 1, 'quotas', 'nowhere'),
    `${file}:10:13 limits[1].quotas.nowhere: Sentence.`,
    'a problem of a missing value is reported at its nearest parent',
  )
  t.equal(formatPath(['buckets', 'a.b', 0]), 'buckets["a.b"][0]')
})

t.test('a misspelt word is matched to the word it resembles, an unrelated word to none', async t => {
  const words = ['enforce', 'report-only', 'upstreams', 'ja3']
  t.equal(nearest('reprot-only', words), 'report-only')
  t.equal(nearest('Upstream', words), 'upstreams')
  t.equal(nearest('ja', words), 'ja3')
  t.equal(nearest('listen', words), undefined)
})
