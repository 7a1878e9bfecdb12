/** What an import could not translate: grouped, the worst first. */
import { formatPath, formatProblem, type Problem } from '../../config/problem.js'
import { printable } from '../text.js'
import type { Origin } from './parts.js'

/** The groups in their order, each with its heading and how its sentences begin. */
const GROUPS = {
  access: ['Access control that is lost', 'Lost: '],
  counts: ['Counts or answers differently', 'Not the same: '],
  elsewhere: ['Not imported, but exists here', 'Left out: '],
  missing: ['Not imported', 'Left out: '],
} as const

export type Group = keyof typeof GROUPS
export interface Finding extends Problem {
  readonly group: Group
}

const MOST_NAMED = 12

export class Findings {
  readonly #file: string
  readonly #found: Finding[] = []
  readonly #reported = new Set<string>()
  readonly #notNeeded = new Set<string>()

  /** @param file the file that a place without one is in */
  constructor(file: string) {
    this.#file = file
  }

  add(group: Group, { line, col, path = [], file = this.#file }: Origin, sentence: string): void {
    const message = GROUPS[group][1] + sentence
    this.#found.push({ group, file, line, col, path: formatPath(path), message })
  }

  /** Notes something that has no effect here. */
  notNeeded(name: string): void {
    this.#notNeeded.add(name)
  }

  /** True the first time it is called with a text. */
  isNew(text: string): boolean {
    if (this.#reported.has(text)) return false
    this.#reported.add(text)
    return true
  }

  /** True when something was left out of the files. */
  get hasLeftOut(): boolean {
    return this.#found.some(({ group }) => group !== 'counts')
  }

  /** All findings in the order in which they are reported. */
  get list(): readonly Finding[] {
    const order = Object.keys(GROUPS)
    return this.#found.sort(
      (a, b) =>
        order.indexOf(a.group) - order.indexOf(b.group) ||
        a.file.localeCompare(b.file) ||
        a.line - b.line ||
        a.col - b.col,
    )
  }

  get unneeded(): readonly string[] {
    return [...this.#notNeeded].sort()
  }

  /** The findings under their headings. */
  text(): string {
    const lines: string[] = []
    for (const [group, [heading]] of Object.entries(GROUPS)) {
      const here = this.list.filter(one => one.group === group)
      if (here.length > 0) lines.push(`${heading}:`, ...here.map(one => `  ${printable(formatProblem(one))}`))
    }
    const names = this.unneeded
    if (names.length > 0) {
      const shown = names.slice(0, MOST_NAMED).map(printable).join(', ')
      lines.push(`Not needed: ${shown}${names.length > MOST_NAMED ? ', …' : ''} (${names.length})`)
    }
    return lines.map(line => `${line}\n`).join('')
  }
}
