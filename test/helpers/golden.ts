/** Expected outputs that are kept as files: what machines read may only change on purpose. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import { inProject } from './root.js'

/**
 * Asserts that `text` equals test/fixtures/golden/NAME. UPDATE_GOLDEN=1 writes the file instead: check the difference.
 */
export function matchesGolden(t: Test, text: string, name: string): void {
  const file = inProject('test', 'fixtures', 'golden', name)
  if (process.env.UPDATE_GOLDEN) writeFileSync(file, text)
  t.equal(text, readFileSync(file, 'utf8'), name)
}
