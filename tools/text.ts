/** Plain text for output: wrapped lines, counts and times. */
import { grouped } from '../gateway/explain/numbers.js'

export { grouped, percent } from '../gateway/explain/numbers.js'

export { printable } from '../gateway/observe/printable.js'

/** Breaks a paragraph into lines of at most `columns`; a longer word has a line of its own. */
export function wrap(paragraph: string, columns: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of paragraph.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

/** `1 line`, `2,000 lines`. */
export function count(number: number, thing: string, things = `${thing}s`): string {
  return `${grouped(number)} ${number === 1 ? thing : things}`
}

/** The minute of an ISO 8601 time: `2026-01-02 03:04`. */
export function minuteOf(iso: string): string {
  return iso.slice(0, 16).replace('T', ' ')
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text that is safe in HTML, also between double quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character] as string)
}
