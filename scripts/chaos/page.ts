/** Writes docs/faults.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { inProject } from '../lib/run.mjs'
import { tableFrom } from '../lib/table.js'
import type { Cell, Row, Section } from './row.js'

const PAGE = inProject('docs', 'faults.md')

/** Writes the results, each with its promise. */
export function writeFaults(sections: readonly Section[]): void {
  const notes = readFileSync(inProject('scripts', 'chaos', 'notes.md'), 'utf8').trim()
  const machine = `Measured on ${cpus().length} cores, with Node ${process.versions.node}.`
  writeFileSync(PAGE, `# Faults\n\n${notes}\n\n${machine}\n\n${sections.map(sectionText).join('\n')}`)
}

/** Replaces the rows that were measured anew; appends a section that the page lacks. */
export function updateFaults(sections: readonly Section[]): void {
  let page = readFileSync(PAGE, 'utf8')
  for (const section of sections) {
    const start = page.indexOf(headOf(section.title))
    if (start < 0) {
      page += `\n${sectionText(section)}`
      continue
    }
    for (const row of section.rows) {
      const texts = textsOf(row)
      const from = page.indexOf(`\n| ${texts[0]} |`, start) + 1
      if (from === 0) continue
      page = `${page.slice(0, from)}| ${texts.join(' | ')} |${page.slice(page.indexOf('\n', from))}`
    }
  }
  writeFileSync(PAGE, page)
}

const headOf = (title: string) => `## ${title}\n\n`

const sectionText = ({ title, note, columns, rows }: Section) =>
  `${headOf(title)}${note}\n\n${tableFrom(['fault', ...columns], rows.map(textsOf))}\n`

const textsOf = ({ name, cells }: Row) => [name, ...cells.map(cellText)]

function cellText({ text, promise, holds }: Cell): string {
  const beside = promise === undefined ? '' : ` (${promise})`
  return `${holds ? '' : '**broken:** '}${text}${beside}`
}
