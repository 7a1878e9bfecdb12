/** Writes docs/faults.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { tableFrom } from '../bench/table.mjs'
import { inProject } from '../lib/run.mjs'

const PAGE = inProject('docs', 'faults.md')

/** Writes the results, each with its promise. */
export function writeFaults(sections) {
  const notes = readFileSync(inProject('scripts', 'chaos', 'notes.md'), 'utf8').trim()
  const machine = `Measured on ${cpus().length} cores, with Node ${process.versions.node}.`
  const parts = sections.map(
    ({ title, note, columns, rows }) =>
      `${headOf(title)}${note}\n\n${tableFrom(['fault', ...columns], rows.map(textsOf))}\n`,
  )
  writeFileSync(PAGE, `# Faults\n\n${notes}\n\n${machine}\n\n${parts.join('\n')}`)
}

/** Replaces the rows that were measured anew. */
export function updateFaults(sections) {
  let page = readFileSync(PAGE, 'utf8')
  for (const { title, rows } of sections) {
    for (const row of rows) {
      const texts = textsOf(row)
      const from = page.indexOf(`\n| ${texts[0]} |`, page.indexOf(headOf(title))) + 1
      if (from === 0) continue
      page = `${page.slice(0, from)}| ${texts.join(' | ')} |${page.slice(page.indexOf('\n', from))}`
    }
  }
  writeFileSync(PAGE, page)
}

const headOf = title => `## ${title}\n\n`

const textsOf = ({ name, cells }) => [name, ...cells.map(cellText)]

function cellText({ told, promise, isKept }) {
  const beside = promise === undefined ? '' : ` (${promise})`
  return `${isKept ? '' : '**broken:** '}${told}${beside}`
}
