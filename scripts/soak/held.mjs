/** Compares what processes held before and after. */
const MB = 1024 * 1024
/** Objects no longer in use: the last of a kind may stay until the next one replaces it. */
const OBJECTS_MAY_GROW = 4
/** Heap after a collection: code compiled in the meantime (3 MB), and bounded caches. */
const HEAP_MAY_GROW = 8 * MB
/** Pages that Node retains: up to 48 MB for young objects, and the buffers of slow readers. */
const RSS_MAY_GROW = 100 * MB

/** The project's quotas, its slots, and a rule that counts twenty addresses: Redis may just have lost all of them. */
const KEYS = 25

/** Rows for each process and for all together: what is held before and after, and whether it has grown. */
export function compare(before, after) {
  return [
    ...after.processes.flatMap(({ name, held }, i) => rowsOf(name, before.processes[i].held, held)),
    row('slots in flight', before.slots, after.slots, 0),
    row('keys in Redis', before.keys, after.keys, KEYS),
  ]
}

export const hasGrown = ([, , , verdict]) => verdict !== 'ok'

function rowsOf(name, before, after) {
  const kinds = new Set([...Object.keys(before.resources), ...Object.keys(after.resources)])
  const grownBy = (what, bytes) => [`${name}: ${what}`, before[what], after[what], before[what] + bytes]
  return [
    ...[...kinds].map(kind => {
      const was = before.resources[kind] ?? 0
      return row(`${name}: ${kind}`, was, after.resources[kind] ?? 0, was)
    }),
    ...Object.entries(after.objects).map(([what, is]) => {
      const was = before.objects[what]
      return row(`${name}: ${what}, as objects`, was, is, was + OBJECTS_MAY_GROW)
    }),
    row(...grownBy('heapUsed', HEAP_MAY_GROW), megabytes),
    row(...grownBy('external', HEAP_MAY_GROW), megabytes),
    row(...grownBy('rss', RSS_MAY_GROW), megabytes),
  ]
}

function row(what, was, is, limit, text = String) {
  return [what, text(was), text(is), is <= limit ? 'ok' : 'grown']
}

function megabytes(bytes) {
  return `${(bytes / MB).toFixed(1)} MB`
}

/** Columns of text under their headings. */
export function table(heads, rows) {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map(row => row[i].length)))
  return [heads, ...rows]
    .map(row =>
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
