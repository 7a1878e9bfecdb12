/** The spellings of closed paths that requests may have. */
import type { ClosedPath } from './doors.js'
import { asNormal } from './paths.js'

/** More spellings than this are closed by the text before the first semicolon, or by the longest text between two. */
const MOST_SEMICOLONS = 3

/**
 * The entries with their paths as requests have them. The other gateway decoded %3B before it looked, and here it is
 * another path than one with a semicolon: both are closed. Several slashes are one here, so they are in an entry, too.
 */
export function asWritten(entry: ClosedPath): ClosedPath[] {
  const host = entry.host === undefined ? {} : { host: entry.host }
  const { path, prefix, contains } = entry
  const [kind, text] =
    path !== undefined
      ? (['path', path] as const)
      : prefix !== undefined
        ? (['prefix', prefix] as const)
        : (['contains', contains ?? ''] as const)
  const parts = asNormal(text)
    .replace(/\/{2,}/g, '/')
    .split(';')
  if (parts.length <= MOST_SEMICOLONS + 1) {
    const spelt = parts
      .slice(1)
      .reduce(
        (heads, part) => heads.flatMap(head => [`${head};${part}`, `${head}%3B${part}`]),
        [parts[0] ?? ''],
      )
    return spelt.map(one => ({ ...host, [kind]: one }))
  }
  if (kind !== 'contains') return [{ ...host, prefix: parts[0] ?? '/' }]
  const [longest = ''] = parts.sort((a, b) => b.length - a.length)
  return [longest === '' ? { ...host, prefix: '/' } : { ...host, contains: longest }]
}
