/** What the pages refer to exists: links, commands and their options. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { brokenLinks, pagePaths, readPage } from '../../scripts/docs/pages.js'
import { readArguments } from '../../tools/arguments.js'
import { COMMANDS } from '../../tools/commands.js'
import { inProject, projectFile } from '../helpers/root.js'

const below = readdirSync(inProject('docs'), { recursive: true, encoding: 'utf8' })
const pages = ['README.md', 'CONTRIBUTING.md', ...below.map(name => join('docs', name))]
  .filter(name => name.endsWith('.md'))
  .map(name => ({ name, text: projectFile(name) }))

t.test('every link leads to an existing file and heading', async t => {
  t.same(brokenLinks(pagePaths().map(readPage)), [])
})

t.test('no page holds both sides of a merge', async t => {
  for (const { name, text } of pages) t.notMatch(text, /^(<{7}|>{7}) /m, name)
})

t.test('every command that a page shows exists, with its options', async t => {
  const commands = new Map(COMMANDS.map(({ name, load }) => [name, load]))
  let shown = 0
  for (const { name: page, text } of pages) {
    for (const line of shownCommands(text)) {
      shown += 1
      const [name = '', ...rest] = wordsOf(line)
      const command = await commands.get(name)?.()
      const title = `${page}: sluice ${line}`
      if (command === undefined) t.fail(title)
      // A placeholder for many commands.
      else if (/[…[\]|]|\.\.\./.test(line)) {
        for (const [, option = ''] of line.matchAll(/--([a-z-]+)/g)) t.ok(option in command.options, title)
      } else t.doesNotThrow(() => readArguments(command, rest), title)
    }
  }
  t.ok(shown > 60, `${shown} commands`)
})

t.test('every npm command that a page shows exists', async t => {
  const { scripts } = JSON.parse(projectFile('package.json')) as { scripts: Record<string, string> }
  const shown = pages.flatMap(({ name, text }) =>
    [...text.matchAll(/npm run ([a-z][a-z:-]*)/g)].map(([, command = '']) => ({ name, command })),
  )
  t.ok(shown.length > 5)
  for (const { name, command } of shown) t.ok(scripts[command], `${name}: npm run ${command}`)
})

/** Commands of `sluice` in blocks of commands and of text, without redirections and comments. */
function* shownCommands(text: string): Generator<string> {
  for (const [, block = ''] of text.matchAll(/^ *```(?:sh|console|text)\n([\s\S]*?)^ *```$/gm)) {
    for (const line of block.replaceAll('\\\n', ' ').split('\n')) {
      const [, written] = /^ *(?:\$ )?(?:[A-Z_]+=\S+ )*(?:npx )?(?:sluice|sluicegate) (.+)$/.exec(line) ?? []
      if (written !== undefined) yield written.split(/ (?:#|>|&|<)/, 1)[0] as string
    }
  }
}

function wordsOf(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
}

t.test('every test that the conformance page quotes exists', async t => {
  const quotes = [
    ...projectFile('docs/proxy-conformance.md').matchAll(/`([a-z0-9]+\/[a-z0-9/-]+)` ([^|\n]*?)(?=; `| \|)/g),
  ]
  t.ok(quotes.length > 90, `${quotes.length} quotes`)
  for (const [, file = '', title = ''] of quotes) {
    const source = projectFile(`test/gateway/${file}.test.ts`)
    // A nested test is quoted behind its parent, and what a title computes as `…`.
    for (const part of title.split(/: |…/)) t.ok(source.includes(part), `${file}: ${title}`)
  }
})
