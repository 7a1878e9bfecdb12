/** Every block of a page has a known tag, and every command of a page is run or has a reason why not. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { canMakeCertificates, makeCertificate } from '../helpers/certificates.js'
import { sluice } from '../helpers/command.js'
import { inProject, projectFile } from '../helpers/root.js'
import { blocksOf, firstLine, pages, placeOf, shownIn } from './blocks.js'
import { NOT_RUN } from './not-run.js'
import { isNotRun } from './walk.js'

const COMMANDS = ['sh', 'console']
const OUTPUT = ['output', 'text']
const FILES = ['yaml', 'json', 'js', 'ts', 'nginx', 'form']

const blocks = pages.flatMap(blocksOf)
const folder = join('test', 'docs')
const tests = readdirSync(inProject(folder))
  .filter(name => name.endsWith('.test.ts'))
  .map(name => projectFile(folder, name))
  .join('\n')

t.test('every block has a known tag', async t => {
  t.ok(blocks.length > 100)
  for (const block of blocks) t.ok([...COMMANDS, ...OUTPUT, ...FILES].includes(block.tag), placeOf(block))
})

t.test('every page with commands is walked, except for blocks with a reason not to run', async t => {
  for (const block of blocks.filter(({ tag }) => COMMANDS.includes(tag))) {
    t.ok(isNotRun(block) || tests.includes(`walk(t, '${block.page}'`), placeOf(block))
  }
})

t.test('every reason not to run belongs to exactly one block', async t => {
  for (const { page, first, why } of NOT_RUN) {
    const meant = blocks.filter(block => block.page === page && firstLine(block).startsWith(first))
    t.equal(meant.length, 1, `${page}: ${first} (${why})`)
  }
})

t.test('an output block follows its commands, and a console block begins with a command', async t => {
  for (const [i, block] of blocks.entries()) {
    if (block.tag === 'output') t.match(blocks[i - 1], { page: block.page, tag: 'sh' }, placeOf(block))
    if (block.tag !== 'console') continue
    const shown = shownIn(block).map(({ command, output = '' }) => `$ ${command}${output}`)
    t.equal(shown.join(''), block.text, placeOf(block))
  }
})

t.test('every part of a gateway.yaml that a page shows passes the check', async t => {
  if (!canMakeCertificates(t)) return
  const dir = t.testdir({ 'projects.yaml': 'version: 1\nprojects: []\n', policies: {} })
  makeCertificate(dir, 'tls')
  const parts = blocks.filter(({ tag, text }) => tag === 'yaml' && !/^[# ]/.test(text))
  t.ok(parts.length > 8)
  for (const part of parts) {
    const { upstreams = { app: { url: 'http://127.0.0.1:3000' } }, ...settings } = parse(part.text)
    const routes = Object.keys(upstreams).map(upstream => ({ path: `/${upstream}/**`, upstream }))
    writeFileSync(join(dir, 'gateway.yaml'), JSON.stringify({ version: 1, upstreams, routes, ...settings }))
    const checked = await sluice(['check', '--config', dir], { env: { REDIS_URL: 'redis://127.0.0.1' } })
    t.match(checked, { code: 0, err: '' }, placeOf(part))
  }
})
