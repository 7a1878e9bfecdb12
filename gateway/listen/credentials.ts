/** What makes a request `authenticated`: it carries a credential, whether or not that is valid. */
import { trimBlanks } from '../http1/grammar.js'
import type { Fields } from '../message.js'

export interface CredentialNames {
  /** Lower-case names of headers. */
  readonly headers: readonly string[]
  /** Names of cookies, case-insensitive, in which `*` stands for any text. */
  readonly cookies: readonly string[]
}

/** Returns a look-up of the first of these credentials that the fields of a request contain with a value, by name. */
export function createCredentials({
  headers,
  cookies,
}: CredentialNames): (fields: Fields) => string | undefined {
  const patterns = cookies.map(pattern => ({ pattern, pieces: pattern.toLowerCase().split('*') }))
  return fields => {
    for (const name of headers) if (fields.get(name)) return `header ${name}`
    if (patterns.length === 0) return undefined
    for (const pair of fields.get('cookie')?.split(';') ?? []) {
      const end = pair.indexOf('=')
      if (end === -1 || trimBlanks(pair.slice(end + 1)) === '') continue
      const name = trimBlanks(pair.slice(0, end)).toLowerCase()
      const found = patterns.find(({ pieces }) => matches(pieces, name))
      if (found !== undefined) return `cookie ${found.pattern}`
    }
    return undefined
  }
}

/** Whether `name` matches a pattern whose text between the `*` is `pieces`. */
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
