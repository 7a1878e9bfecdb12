import type { Test } from 'tap'

/** Reports that a test's real server is missing: a failure in CI, otherwise a skip that says how to get it. */
export function reportMissing(t: Test, server: string, remedy: string): void {
  const sentence = `${server} is missing: ${remedy}`
  if (process.env.CI === 'true') t.fail(sentence)
  else t.pass(sentence, { skip: true })
}
