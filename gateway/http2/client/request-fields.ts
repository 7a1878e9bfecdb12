/**
 * The fields of a request, from its head in the form of HTTP/1.1: which fields an upstream gets is decided where that
 * head is written, once for all versions.
 */
import { trimBlanks } from '../../http1/grammar.js'
import { lowerName } from '../../http1/names.js'
import { isConnectionField } from '../hpack/header-field.js'

export type Scheme = 'http' | 'https'

const LINE_END = '\r\n'
const VERSION = ' HTTP/1.1'

/** The flat fields of the request, the pseudo-header fields first (RFC 9113 section 8.3.1). */
export function requestFields(method: string, head: string, scheme: Scheme): readonly string[] {
  const lineEnd = head.indexOf(LINE_END)
  const path = head.slice(method.length + 1, lineEnd - VERSION.length)
  const fields = [':method', method, ':scheme', scheme, ':authority', '', ':path', path]
  let at = lineEnd + LINE_END.length
  for (let end = head.indexOf(LINE_END, at); end > at; end = head.indexOf(LINE_END, at)) {
    const colon = head.indexOf(':', at)
    const name = head.slice(at, colon)
    const lower = lowerName(name)
    const value = trimBlanks(head.slice(colon + 1, end))
    if (lower === 'host') fields[AUTHORITY_AT] = value
    else if (!isConnectionField(lower)) fields.push(lower, value)
    at = end + LINE_END.length
  }
  return fields
}

/** Place of the value of `:authority`. */
const AUTHORITY_AT = 5
