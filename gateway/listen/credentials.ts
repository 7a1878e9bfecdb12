/** What makes a request `authenticated`: a credential that it carries. Whether it is a good one is not asked here. */
import type { Fields } from '../message.js'

export interface CredentialNames {
  /** Lower-case names of headers. */
  readonly headers: readonly string[]
  /** Names of cookies, in which `*` stands for any text; letter case does not count. */
  readonly cookies: readonly string[]
}

/** Says whether one of these stands in the fields of a request with a value. */
export function createCredentials({ headers, cookies }: CredentialNames): (fields: Fields) => boolean {
  const patterns = cookies.map(pattern => pattern.toLowerCase().split('*'))
  return fields => {
    for (const name of headers) if (fields.get(name)) return true
    if (patterns.length === 0) return false
    for (const pair of fields.get('cookie')?.split(';') ?? []) {
      const end = pair.indexOf('=')
      if (end === -1 || pair.slice(end + 1).trim() === '') continue
      const name = pair.slice(0, end).trim().toLowerCase()
      if (patterns.some(pattern => matches(pattern, name))) return true
    }
    return false
  }
}

/** Whether the pieces of a pattern, split at its `*`, stand in the name one after the other, from its begin to its end. */
function matches(pieces: readonly string[], name: string): boolean {
  const first = pieces[0] as string
  if (pieces.length === 1) return name === first
  const last = pieces.at(-1) as string
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}
