/** docs/faults.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { tableFrom } from '../bench/table.mjs'
import { inProject } from '../lib/run.mjs'

/** Writes what was measured, with the promise beside each. */
export function writeFaults(sections) {
  const notes = readFileSync(inProject('scripts', 'chaos', 'notes.md'), 'utf8').trim()
  const machine = `Measured on ${cpus().length} cores, with Node ${process.versions.node}.`
  const parts = sections.map(({ title, note, columns, rows }) => {
    const body = rows.map(({ name, cells }) => [name, ...cells.map(cellText)])
    return `## ${title}\n\n${note}\n\n${tableFrom(['fault', ...columns], body)}\n`
  })
  writeFileSync(inProject('docs', 'faults.md'), `# Faults\n\n${notes}\n\n${machine}\n\n${parts.join('\n')}`)
}

function cellText({ told, promise, isKept }) {
  const beside = promise === undefined ? '' : ` (${promise})`
  return `${isKept ? '' : '**broken:** '}${told}${beside}`
}
