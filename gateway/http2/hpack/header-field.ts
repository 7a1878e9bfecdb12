/** A field of a header block, judged when it is decoded: one that comes from a table again costs a look-up. */
import { consistsOf, isBlank, TEXT, TOKEN } from '../../http1/grammar.js'

/**
 * What a field means to HTTP/2 (RFC 9113 section 8.2): a pseudo-header field, one about the connection, which must not be
 * there, or an ordinary one; `invalid` if its name or value is no field's.
 */
export type FieldKind =
  | 'ordinary'
  | ':method'
  | ':scheme'
  | ':path'
  | ':authority'
  | ':status'
  | 'connection'
  | 'te'
  | 'invalid'

const KINDS: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ...([':method', ':scheme', ':path', ':authority', ':status', 'te'] as const).map(
    name => [name, name] as const,
  ),
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map(
    name => [name, 'connection'] as const,
  ),
])

export class HeaderField {
  readonly name: string
  readonly value: string
  readonly kind: FieldKind
  /** What the name alone means, for other values of it. */
  readonly nameKind: FieldKind
  /** As tables and lists count it, in bytes (RFC 7541 section 4.1). */
  readonly size: number

  constructor(name: string, value: string, nameKind = kindOf(name)) {
    this.name = name
    this.value = value
    this.nameKind = nameKind
    this.kind = isFieldValue(value) ? nameKind : 'invalid'
    this.size = sizeOf(name, value)
  }
}

/** True for the name, in lower case, of a field about an HTTP/1.1 connection (RFC 9113 section 8.2.2). */
export function isConnectionField(name: string): boolean {
  return KINDS.get(name) === 'connection'
}

/** The size of a field (RFC 7541 section 4.1). */
export function sizeOf(name: string, value: string): number {
  return name.length + value.length + 32
}

function kindOf(name: string): FieldKind {
  const known = KINDS.get(name)
  if (known !== undefined) return known
  return isFieldName(name) && !hasCapital(name) ? 'ordinary' : 'invalid'
}

/** In any letter case, as in HTTP/1.1. */
export function isFieldName(name: string): boolean {
  return name.length > 0 && consistsOf(name, TOKEN)
}

/** RFC 9113 section 8.2.1: a name with capital letters is malformed. */
function hasCapital(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code >= 0x41 && code <= 0x5a) return true
  }
  return false
}

/** As in HTTP/1.1, and without blanks around it, which nothing strips here (RFC 9113 section 8.2.1). */
function isFieldValue(value: string): boolean {
  const { length } = value
  if (length === 0) return true
  if (isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(length - 1))) return false
  return consistsOf(value, TEXT)
}
