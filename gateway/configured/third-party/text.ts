/** What a plugin threw, as displayable text: it may be anything, and of any length. */

const LONGEST = 300

/** The first line, of at most 300 characters. Never throws. */
export function messageOf(thrown: unknown): string {
  const [line = ''] = textOf(thrown).split('\n', 1)
  const clean = line.replace(/\p{Cc}/gu, '?')
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST)}…` : clean
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'something that is not text'
  }
}
