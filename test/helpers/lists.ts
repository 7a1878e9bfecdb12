/** Assertions about whole lists. */
import type { Test } from 'tap'

/** `t.match` of each entry with its pattern; it fails when there are more entries than patterns, which `t.match` ignores. */
export function matchList(
  t: Test,
  list: unknown,
  patterns: readonly unknown[],
  message = 'should match, each and all',
): void {
  t.match(list, { ...patterns, length: patterns.length }, message)
}
