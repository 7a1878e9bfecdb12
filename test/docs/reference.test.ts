/** The reference pages match the code. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { CATALOGUE } from '../../gateway/errors.js'
import { sluice } from '../helpers/command.js'
import { projectFile, root } from '../helpers/root.js'

const run = promisify(execFile)
const errors = projectFile('docs/reference/errors.md')

t.test('the generated pages are up to date', async t => {
  await t.resolves(run(process.execPath, ['dist/scripts/generate-docs.js', '--check'], { cwd: root }))
})

t.test('every problem code has a heading, a status and a title in docs/reference/errors.md', async t => {
  const told = [...errors.matchAll(/^### ([a-z-]+)\n\n\*\*(\d+)\*\* ([^.]+)\./gm)]
  t.same(
    told.map(([, code, status, title]) => `${code} ${status} ${title}`).sort(),
    Object.entries(CATALOGUE)
      .map(([code, { status, title }]) => `${code} ${status} ${title}`)
      .sort(),
  )
})

t.test('every fault and warning of the fixtures is explained in docs/reference/errors.md', async t => {
  const patterns = [...errors.matchAll(/^\| `(.+?)` \|/gm)].map(([, sentence = '']) => patternOf(sentence))
  const { out } = await sluice(['check', '--config', join('test', 'fixtures', 'lint')])
  const warnings = out.split('\n').filter(line => line.includes(' warning: ') || line.includes(' note: '))
  t.ok(warnings.length > 10)
  for (const line of [...expectedFaults(), ...warnings]) {
    const sentence = line.replace(/^\S+:\d+:\d+( [^ ]+?)?: (warning: |note: )?/, '')
    t.ok(
      patterns.some(pattern => pattern.test(sentence)),
      sentence,
    )
  }
})

t.test(
  'every environment variable that the code reads is explained in docs/reference/environment.md',
  async t => {
    const page = projectFile('docs/reference/environment.md')
    const names = new Set(
      ['gateway', 'services', 'tools', 'webhooks'].flatMap(sources).flatMap(text => {
        const read = text.matchAll(
          /\benv(?:\.|\[')([A-Z][A-Z_]+)|\b(?:env, |flag\(|whole\()'([A-Z][A-Z_]+)'/g,
        )
        return [...read].map(([, dotted, named]) => dotted ?? (named as string))
      }),
    )
    for (const [, name] of projectFile('config/gateway.yaml').matchAll(/\$\{([A-Z_]+)/g))
      names.add(name as string)
    t.ok(names.size > 20)
    // These belong to Node and to the terminal.
    for (const foreign of ['NODE_OPTIONS', 'COLUMNS']) names.delete(foreign)
    for (const name of names) t.match(page, `\`${name}\``, name)
  },
)

/** A sentence of the page, in which `…` stands for any text. */
function patternOf(sentence: string): RegExp {
  const parts = sentence.split('…').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}

function expectedFaults(): string[] {
  const folder = join('test', 'fixtures', 'bad')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files
    .filter(name => name.endsWith('expected.txt'))
    .flatMap(name => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean))
}

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => readFileSync(join(folder, name), 'utf8'))
}
