/** No regular expression takes longer than in proportion to the text it reads. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ESCAPED } from '../services/identity/schema/pattern-syntax.js'
import { regexpsOf, superLinear } from './helpers/regexps.js'
import { projectFile, root } from './helpers/root.js'

const FOLDERS = ['gateway', 'services', 'config', 'tools', 'webhooks', 'scripts', 'examples']

/** Slow on purpose: the schema with which the bench shows that patterns are refused. */
const ATTACKS = ['scripts/bench/directory/forms.ts']

/** Expressions that are put together at run time, and why each is linear. */
const COMPUTED: Record<string, Record<string, string>> = {
  'config/schema/duration.ts': { DURATION_PATTERN: 'in config/gateway.schema.json' },
  'config/checks/rules.ts': { HOST_NAME_PATTERN: 'in config/projects.schema.json' },
  'config/words/words.ts': { PROJECT_ID_PATTERN: 'in config/projects.schema.json' },
  'services/identity/render/inputs.ts': {
    '`${ESCAPED}|.`': 'checked below',
    whole: 'compiled to see whether a browser could, never run',
  },
  'services/identity/schema/pattern-syntax.ts': {
    '`^${ESCAPED}`': 'checked below',
    '`^${atom}$`': 'one character',
    source: 'compiled to find its errors, never run',
  },
  'services/storage/mongodb.ts': { '`[?&]${name}=`': 'names of options' },
  'scripts/suites/keys.ts': { paths: 'written in the suites' },
}

t.test('no regular expression is super-linear', async t => {
  const paths = FOLDERS.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
  ).filter(path => /\.(ts|mjs|js)$/.test(path))
  const faults: string[] = []
  const computed: Record<string, string[]> = {}
  for (const path of paths.filter(path => !ATTACKS.includes(path))) {
    const read = regexpsOf(path, projectFile(path))
    if (read.computed.length > 0) computed[path] = read.computed
    for (const one of read.found) {
      for (const why of superLinear(one))
        faults.push(`${path}:${one.line} /${one.source}/${one.flags}: ${why}`)
    }
  }
  t.same(faults, [])
  const known = Object.entries(COMPUTED).map(([path, texts]) => [path, Object.keys(texts)])
  t.same(computed, Object.fromEntries(known), 'those put together at run time are in the table above')
  for (const source of [`^${ESCAPED}`, `${ESCAPED}|.`]) t.same(superLinear({ source, flags: 'gsu' }), [])
})

t.test('no pattern of a schema of the configuration is super-linear', async t => {
  const schemas = readdirSync(join(root, 'config')).filter(name => name.endsWith('.schema.json'))
  const patterns = new Set<string>()
  for (const name of schemas) {
    JSON.parse(projectFile(`config/${name}`), (key, value) => {
      if (key === 'pattern' && typeof value === 'string') patterns.add(value)
      return value
    })
  }
  t.ok(patterns.size > 10)
  for (const source of patterns) t.same(superLinear({ source, flags: 'u' }), [], source)
})

t.test('super-linear expressions are recognized, and the usual cures of them are not', async t => {
  for (const [slow, fast] of [
    [/;\s*name\s*(\*?)\s*=/, /;\s*name\s*(?:(\*)\s*)?=/],
    [/^(a|aa|a+)+$/, /^a+$/],
    [/\/+$/, /(?<!\/)\/+$/],
    [/<[^>]*>/, /<[^<>]*>/],
    [/ab.*c/, /ab[^a]*c/],
    [/x(?:ab.*)c/, /x(?:ab.*)/],
    [/^(\w+):[ \t]*(.*)$/, /^(\w+):(.*)$/],
  ] as const) {
    t.not(superLinear(slow).length, 0, String(slow))
    t.same(superLinear(fast), [], String(fast))
  }
})
