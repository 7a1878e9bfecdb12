/** Writes the benchmark pages in docs/. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { inProject } from '../lib/run.mjs'

/**
 * Writes a page: its notes, the machine, a section for each measurement, and what there is to say about them.
 *
 * @param page its name in docs/
 * @param notes the file in this folder that explains how to read the figures
 * @param how rounds and durations, for the line that describes the machine
 * @param sections of `title` and Markdown `text`
 * @param details the file in this folder with further sections
 */
export function writePage({ page, title, notes, how, sections, details }) {
  const cpu = cpus()[0]?.model ?? 'unknown'
  const kernel = readFileSync('/proc/version', 'utf8').split(' ')[2]
  const machine = `${cpus().length} cores of ${cpu}, Linux ${kernel}, Node ${process.versions.node}; ${how}.`
  const textOf = file => readFileSync(inProject('scripts', 'bench', file), 'utf8').trim()
  const parts = sections.map(({ title, text }) => `## ${title}\n\n${text}\n`)
  if (details !== undefined) parts.push(`${textOf(details)}\n`)
  writeFileSync(
    inProject('docs', page),
    `# ${title}\n\n${textOf(notes)}\n\nMeasured on ${machine}\n\n${parts.join('\n')}`,
  )
}
