import type { Test } from 'tap'
import { WireError } from '../../../gateway/http1/message.js'

/** The code of the WireError that `read` throws; undefined when it throws none. */
export function codeOf(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return error.code
  }
}

/** Asserts that each of `texts`, keyed by description, is rejected with `code`. */
export function allRefused(
  t: Test,
  read: (text: string) => unknown,
  texts: Readonly<Record<string, string>>,
  code = 'bad-request',
): void {
  for (const [what, text] of Object.entries(texts))
    t.equal(
      codeOf(() => read(text)),
      code,
      what,
    )
}
