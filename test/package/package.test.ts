/** The npm package as its users get it, without a checkout. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import t from 'tap'
import { inProject, projectFile } from '../helpers/root.js'
import { packed } from './packed.js'

const { folder, installed, archive, files } = packed(t)

t.test(
  'the package contains commands, schemas, starter files, docs and examples, and no tests or sources',
  async t => {
    for (const file of [
      'dist/gateway/cli.js',
      'config/gateway.yaml',
      'config/gateway.schema.json',
      'config/policies/project-limits.yaml',
      'docs/policies.md',
      'docs/plugins.md',
      'examples/plugin-introspection-cost/index.js',
      'README.md',
      'LICENSE',
    ]) {
      t.ok(files.includes(file), file)
    }
    t.same(
      files.filter(file => /^dist\/test\/|\.map$|(^|\/)node_modules\/|(?<!\.d)\.ts$/.test(file)),
      [],
    )
  },
)

t.test('the package has no scripts that run on installation', async t => {
  const { scripts } = JSON.parse(projectFile('package.json')) as { scripts: Record<string, string> }
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) t.notOk(scripts[name], name)
})

t.test(
  'every relative link of the packaged pages leads to a packaged file and one of its headings',
  async t => {
    const pages = files.filter(file => file.endsWith('.md'))
    t.ok(pages.length > 10)
    const text = (file: string) => readFileSync(join(installed, file), 'utf8')
    const broken = pages.flatMap(page =>
      linksOf(text(page))
        .filter(link => {
          const [path = '', heading] = link.split('#')
          const target =
            path === '' ? page : posix.normalize(posix.join(dirname(page), path)).replace(/\/$/, '')
          const isThere = files.some(file => file === target || file.startsWith(`${target}/`))
          if (!isThere) return true
          return heading !== undefined && target.endsWith('.md') && !anchorsOf(text(target)).includes(heading)
        })
        .map(link => `${page}: ${link}`),
    )
    t.same(broken, [])
  },
)

function linksOf(page: string): string[] {
  const prose = page.replace(/^```.*?^```/gms, '')
  const inline = [...prose.matchAll(/\]\(([^)\s]+)\)/g), ...prose.matchAll(/(?:src|href)="([^"]+)"/g)]
  return inline.map(([, link]) => link as string).filter(link => !/^[a-z]+:/.test(link))
}

/** Heading anchors, as code forges generate them. */
function anchorsOf(page: string): string[] {
  return [...page.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/\]\([^)]*\)/g, '')
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

t.test('the installed command runs in an empty folder', async t => {
  const sluice = (...args: string[]) =>
    spawnSync(join(folder, 'node_modules', '.bin', 'sluice'), args, { cwd: folder, encoding: 'utf8' })
  t.equal(sluice('--version').stdout.trim(), JSON.parse(projectFile('package.json')).version)
  t.match(sluice('check', '--config', join(installed, 'config')), { status: 0, stdout: /: good\. / })
  t.match(sluice('schema', 'projects').stdout, '"$schema"')
})

const CONSUMER = `
import { definePlugin, Duration, Type } from 'sluicegate'
import { open } from 'sluicegate/directory'
import { compileSchema } from 'sluicegate/identity'
import { factsOf, settingsOf, TestClock, TestCounters } from 'sluicegate/testing'

const budget = definePlugin({
  name: 'budget',
  kind: 'limit',
  schema: Type.Object({ kib: Type.Integer(), per: Duration({ default: '60s' }) }),
  create: () => ({
    demand: ({ rule }) => ({ kind: 'meter', quota: rule.config.kib, ms: rule.config.per, blockMs: 0 }),
  }),
})
const ms: number = settingsOf(budget, { kib: 1 }).per
const left: number | undefined = new TestCounters(new TestClock()).take('k', { kind: 'slots', max: ms, ttlMs: 1000 }).counts[0]?.left
// @ts-expect-error facts are read, never written
factsOf({ target: '/' }).path = '/'
// @ts-expect-error a limit says what to count
definePlugin({ name: 'none', kind: 'limit', schema: Type.Object({}), create: () => ({}) })
export { compileSchema, left, open }
`

for (const moduleResolution of ['nodenext', 'bundler']) {
  t.test(
    `a TypeScript project finds the types of the package, with moduleResolution ${moduleResolution}`,
    async t => {
      const compilerOptions = {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        target: 'es2023',
        module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext',
        moduleResolution,
        types: [],
      }
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
      writeFileSync(join(folder, 'consumer.ts'), CONSUMER)
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions, files: ['consumer.ts'] }),
      )
      const tsc = inProject('node_modules', 'typescript', 'bin', 'tsc')
      const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
      t.equal(stdout, '')
      t.equal(status, 0)
    },
  )
}

t.test('publint and attw report no problem', async t => {
  const bin = (name: string) => inProject('node_modules', '.bin', name)
  for (const [name, ...args] of [
    ['publint', 'run', '--strict'],
    ['attw', '--profile', 'esm-only', '--quiet'],
  ] as const) {
    const { status, stdout, stderr } = spawnSync(bin(name), [...args, archive], {
      encoding: 'utf8',
    })
    t.equal(status, 0, `${name}: ${stdout}${stderr}`)
  }
})
