/** What a page of docs/ lists in the first column of its tables. */
import { projectFile } from './root.js'

/** The names in backticks at the start of the table rows under `heading`, in order. */
export function documentedNames(page: string, heading: string): string[] {
  const text = projectFile('docs', page)
  const from = text.indexOf(`\n## ${heading}\n`)
  if (from < 0) throw new Error(`docs/${page} has no heading "${heading}"`)
  const to = text.indexOf('\n## ', from + 1)
  const rows = text.slice(from, to < 0 ? undefined : to).matchAll(/^\| (`[^|]*`) \|/gm)
  return [...rows].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
  )
}
