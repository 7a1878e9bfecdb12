/** Compares what processes held before and after. */
import type { Report } from './gateway.js'
import type { Held } from './probe.js'

const MB = 1024 * 1024
/** Objects no longer in use: the last of a kind may stay until the next one replaces it. */
const OBJECTS_MAY_GROW = 4
/** Heap after a collection: code compiled in the meantime (3 MB), and bounded caches. */
const HEAP_MAY_GROW = 8 * MB
/** Pages that Node retains: up to 48 MB for young objects, and the buffers of slow readers. */
const RSS_MAY_GROW = 100 * MB

/** The project's quotas, its slots, and a rule that counts twenty addresses: Redis may just have lost all of them. */
const KEYS = 25

/** What is held, before and after, and whether it has grown. */
type Row = readonly [what: string, before: string, after: string, verdict: 'ok' | 'grown']

/** Rows for each process and for all together. */
export function compare(before: Report, after: Report): Row[] {
  return [
    ...after.processes.flatMap(({ name, held }, i) => rowsOf(name, before.processes[i]?.held ?? held, held)),
    row('slots in flight', before.slots, after.slots, 0),
    row('keys in Redis', before.keys, after.keys, KEYS),
  ]
}

export const hasGrown = ([, , , verdict]: Row): boolean => verdict !== 'ok'

function rowsOf(name: string, before: Held, after: Held): Row[] {
  const kinds = new Set([...Object.keys(before.resources), ...Object.keys(after.resources)])
  const grownBy = (what: 'heapUsed' | 'external' | 'rss', bytes: number) =>
    row(`${name}: ${what}`, before[what], after[what], before[what] + bytes, megabytes)
  return [
    ...[...kinds].map(kind => {
      const was = before.resources[kind] ?? 0
      return row(`${name}: ${kind}`, was, after.resources[kind] ?? 0, was)
    }),
    ...Object.entries(after.objects).map(([what, is]) => {
      const was = before.objects[what] ?? 0
      return row(`${name}: ${what}, as objects`, was, is, was + OBJECTS_MAY_GROW)
    }),
    grownBy('heapUsed', HEAP_MAY_GROW),
    grownBy('external', HEAP_MAY_GROW),
    grownBy('rss', RSS_MAY_GROW),
  ]
}

function row(
  what: string,
  was: number,
  is: number,
  limit: number,
  text: (value: number) => string = String,
): Row {
  return [what, text(was), text(is), is <= limit ? 'ok' : 'grown']
}

function megabytes(bytes: number): string {
  return `${(bytes / MB).toFixed(1)} MB`
}

/** Columns of text under their headings. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows]
  const widths = heads.map((_, i) => Math.max(...all.map(row => row[i]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  return all.map(line).join('\n')
}
