/** What the pages show is there: links, commands and the first minute of a new user. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { readArguments } from '../../tools/arguments.js'
import { COMMANDS } from '../../tools/commands.js'
import { inProject, projectFile, root } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

const run = promisify(execFile)
const below = readdirSync(inProject('docs'), { recursive: true, encoding: 'utf8' })
const pages = ['README.md', 'CONTRIBUTING.md', ...below.map(name => join('docs', name))]
  .filter(name => name.endsWith('.md'))
  .map(name => ({ name, text: projectFile(name) }))

t.test('every link leads to a file, and to a heading of it', async t => {
  await t.resolves(run(process.execPath, ['scripts/docs-site.mjs', '--check'], { cwd: root }))
})

t.test('every command that a page shows exists, with its options', async t => {
  const commands = new Map(COMMANDS.map(({ name, load }) => [name, load]))
  let shown = 0
  for (const { name: page, text } of pages) {
    for (const words of shownCommands(text)) {
      const [name = '', ...rest] = words
      const command = await commands.get(name)?.()
      const line = `${page}: sluice ${words.join(' ')}`
      if (command === undefined) t.fail(line)
      else t.doesNotThrow(() => readArguments(command, rest), line)
      shown += 1
    }
  }
  t.ok(shown > 40)
})

t.test('every npm command that a page shows exists', async t => {
  const { scripts } = JSON.parse(projectFile('package.json')) as { scripts: Record<string, string> }
  for (const { name: page, text } of pages) {
    for (const [, command = ''] of text.matchAll(/npm run ([a-z][a-z:-]*)/g)) {
      t.ok(scripts[command], `${page}: npm run ${command}`)
    }
  }
})

t.test('the README puts a service of yours behind a limit in a minute', async t => {
  const upstream = createServer((_, res) => res.end('hello\n')).listen(0, '127.0.0.1')
  t.teardown(() => upstream.close())
  await once(upstream, 'listening')
  const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const section = projectFile('README.md').split('## Your own service')[1] as string
  const [start = '', ask = ''] = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
    ([, block = '']) => block,
  )

  const words = start.trim().replace('http://127.0.0.1:3000', address).split(' ').slice(2)
  const gateway = spawn(process.execPath, ['dist/gateway/cli.js', ...words], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', PORT: '0', ADMIN_PORT: '0' },
  })
  t.teardown(() => gateway.kill('SIGKILL'))
  let said = ''
  gateway.stderr.on('data', text => {
    said += text
  })
  const [, url = ''] = await waitUntil('what to try', () => /Try it: +curl -i (\S+)/.exec(said), 20_000)
  const { stdout } = await run('bash', ['-c', ask.replaceAll('http://127.0.0.1:8080/', url)])
  t.match(stdout, /^(200 ){5}HTTP\/1\.1 429 Too Many Requests/)
  t.match(stdout, /RateLimit-Policy: "everything\.minute";q=5;w=60/)
  t.match(stdout, '"code":"quota-exceeded"')
})

/** Commands of `sluice` in blocks of code, as words; not those that stand for many, with `[options]` or `…`. */
function* shownCommands(text: string): Generator<string[]> {
  for (const [, block = ''] of text.matchAll(/^ *```(?:sh)?\n([\s\S]*?)^ *```$/gm)) {
    for (const line of block.replaceAll('\\\n', ' ').split('\n')) {
      const [, written] = /^ *(?:\$ )?(?:[A-Z_]+=\S+ )*(?:npx )?(?:sluice|sluicegate) (.+)$/.exec(line) ?? []
      if (written === undefined || /[…[\]]|\.\.\.|\|/.test(written)) continue
      const [command = ''] = written.split(/ (?:#|>|&|<)/)
      yield [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
    }
  }
}
