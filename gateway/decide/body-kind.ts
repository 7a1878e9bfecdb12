/** What a body is, as far as upstreams may read fields in it. */
import type { Facts } from '../types.js'

/** How much of a body rules may read: enough for forms and calls, little enough to hold in memory. */
export const PEEK_BYTES = 64 * 1024

/** `other`: has fields only if an upstream reads it as JSON whatever its type says. */
export type BodyKind = 'form' | 'multipart' | 'json' | 'other'

const FORM = 'application/x-www-form-urlencoded'
/** Streams in both directions: waiting for more of one could wait for ever, and none holds fields. */
const STREAM = /^application\/grpc/
/** Character sets in which ASCII text is the same bytes as in UTF-8, and only those. An empty name says nothing. */
const LIKE_UTF8 = /^(?:|utf-?8|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|(?:windows-|cp)125\d)$/i
const CHARSET = /;\s*charset\s*=\s*["']?([^"';,\s]*)/gi
/** Between the values of a repeated Content-Type. */
const NEXT_TYPE = /,(?=\s*[\w.+-]+\/)/

/** The kind of body that some upstream may read fields in; undefined if it has no fields. */
export function bodyKind(facts: Facts): BodyKind | undefined {
  const kinds = typesOf(facts)
  return kinds.find(kind => kind !== 'other') ?? kinds[0]
}

/**
 * True if upstreams may read a body with fields in a way that the gateway does not: it is compressed, in a character
 * set such as UTF-16, or has several types, of which each upstream takes one.
 */
export function isUnreadable(facts: Facts, body: Buffer): boolean {
  if (body.length === 0) return false
  const encoding = facts.header('content-encoding')?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') return true
  const types = typesOf(facts)
  if (types.length > 1) return true
  if (!isLikeUtf8(facts.header('content-type') ?? '')) return true
  // UTF-16 and UTF-32, which some upstreams recognize without being told. Files in multipart forms may hold any byte.
  return types[0] !== 'multipart' && body.includes(0)
}

/** False if the text of a Content-Type names a character set whose bytes the gateway would read as other characters. */
export function isLikeUtf8(contentType: string): boolean {
  return [...contentType.matchAll(CHARSET)].every(([, charset = '']) => LIKE_UTF8.test(charset))
}

/** Some upstreams take blanks, and others commas, for the end of a type. */
function typesOf(facts: Facts): (BodyKind | undefined)[] {
  const written = facts.header('content-type')?.split(NEXT_TYPE) ?? ['']
  return written.map(type => kindOf(/^\s*([^\s;,]*)/.exec(type.toLowerCase())?.[1] ?? ''))
}

function kindOf(type: string): BodyKind | undefined {
  if (type === FORM) return 'form'
  if (type.startsWith('multipart/')) return 'multipart'
  if (/[/+]json$/.test(type)) return 'json'
  return STREAM.test(type) ? undefined : 'other'
}
