/** Writes the benchmark pages in docs/. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { inProject } from '../lib/run.mjs'

export interface BenchSection {
  readonly title: string
  /** Markdown. */
  readonly text: string
}

export interface BenchPage {
  /** Its name in docs/. */
  readonly page: string
  readonly title: string
  /** The file in this folder that explains how to read the figures. */
  readonly notes: string
  /** Rounds and durations, for the line that describes the machine. */
  readonly how: string
  readonly sections: readonly BenchSection[]
  /** The file in this folder with further sections. */
  readonly details?: string
}

/** Writes a page: its notes, the machine, a section for each measurement, and what there is to say about them. */
export function writePage({ page, title, notes, how, sections, details }: BenchPage): void {
  const cpu = cpus()[0]?.model ?? 'unknown'
  const kernel = readFileSync('/proc/version', 'utf8').split(' ')[2]
  const machine = `${cpus().length} cores of ${cpu}, Linux ${kernel}, Node ${process.versions.node}; ${how}.`
  const textOf = (file: string) => readFileSync(inProject('scripts', 'bench', file), 'utf8').trim()
  const parts = sections.map(({ title, text }) => `## ${title}\n\n${text}\n`)
  if (details !== undefined) parts.push(`${textOf(details)}\n`)
  writeFileSync(
    inProject('docs', page),
    `# ${title}\n\n${textOf(notes)}\n\nMeasured on ${machine}\n\n${parts.join('\n')}`,
  )
}
