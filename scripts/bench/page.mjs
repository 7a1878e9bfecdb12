/** Writes the benchmark pages in docs/. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { inProject } from '../lib/run.mjs'

/**
 * Writes a page: its notes, the machine, and a section for each measurement.
 *
 * @param page its name in docs/
 * @param notes the file in this folder that explains how to read the figures
 * @param how rounds and durations, for the line that describes the machine
 * @param sections of `title` and Markdown `text`
 */
export function writePage({ page, title, notes, how, sections }) {
  const cpu = cpus()[0]?.model ?? 'unknown'
  const kernel = readFileSync('/proc/version', 'utf8').split(' ')[2]
  const machine = `${cpus().length} cores of ${cpu}, Linux ${kernel}, Node ${process.versions.node}; ${how}.`
  const said = readFileSync(inProject('scripts', 'bench', notes), 'utf8').trim()
  const parts = sections.map(({ title, text }) => `## ${title}\n\n${text}\n`)
  writeFileSync(
    inProject('docs', page),
    `# ${title}\n\n${said}\n\nMeasured on ${machine}\n\n${parts.join('\n')}`,
  )
}
