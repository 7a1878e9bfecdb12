/** The fenced blocks of the pages. CONTRIBUTING.md, "Documentation", says what the tags mean. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { inProject, projectFile } from '../helpers/root.js'

export interface PageBlock {
  readonly page: string
  /** Line of the fence, from 1. */
  readonly line: number
  readonly tag: string
  /** Without the fence's indentation; ends in a line break. */
  readonly text: string
}

const below = readdirSync(inProject('docs'), { recursive: true, encoding: 'utf8' })

/** README.md and the pages of docs/. */
export const pages: readonly string[] = ['README.md', ...below.map(name => join('docs', name)).sort()].filter(
  name => name.endsWith('.md'),
)

/** All blocks of a page, in order. */
export function blocksOf(page: string): PageBlock[] {
  const text = projectFile(page)
  return [...text.matchAll(/^( *)```(\S*)\n([\s\S]*?)^\1```$/gm)].map(
    ([, indent = '', tag = '', body = ''], i, all) => ({
      page,
      line: text.slice(0, all[i]?.index).split('\n').length,
      tag,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  )
}

/** A block that begins with the name of a file is that file. */
const FILE = /^(?:#|\/\/) ([\w./-]+\.(?:yaml|js|conf))\n/

/** The file that a block is, if it is one. */
export const fileOf = ({ text }: Pick<PageBlock, 'text'>): string | undefined => FILE.exec(text)?.[1]

/** The files that a page shows whole. */
export function filesOf(page: string): { readonly file: string; readonly text: string }[] {
  return blocksOf(page).flatMap(block => {
    const file = fileOf(block)
    return file === undefined ? [] : [{ file, text: block.text }]
  })
}

export const firstLine = ({ text }: PageBlock): string => text.split('\n', 1)[0] as string

/** Where a block is, for the message of an assertion. */
export const placeOf = (block: PageBlock): string => `${block.page}:${block.line} ${firstLine(block)}`

/** A command, and the output that the page shows for it, if any. */
export interface ShownCommand {
  readonly command: string
  readonly output: string | undefined
}

/**
 * The commands of a `console` block: each `$ ` line, with its backslash continuations, and the lines up to the next.
 */
export function shownIn(block: PageBlock): ShownCommand[] {
  return [...block.text.matchAll(/^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)/gm)].map(
    ([, command = '', output = '']) => ({ command, output: output === '' ? undefined : output }),
  )
}
