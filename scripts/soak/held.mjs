/** What processes held before and after, side by side. */
const MB = 1024 * 1024
/** Objects that nothing is done with any more: the last of their kind may stay until the next one takes their place. */
const OBJECTS_MAY_GROW = 4
/** Memory after a collection: the code that was compiled meanwhile (3 MB), and caches with a bound. */
const HEAP_MAY_GROW = 8 * MB
/** Pages that Node keeps for later: up to 48 MB for young objects, and the buffers of slow readers. */
const RSS_MAY_GROW = 100 * MB

/** One for the project's quotas, its slots, and a rule that counts twenty addresses: Redis may just have lost them all. */
const KEYS = 25

/** Rows of what is held, before, after and whether it has grown, for each process and all together. */
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

/** Columns of text under their heads. */
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
