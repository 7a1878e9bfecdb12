/** The key part of recovery requests: the e-mail, or the flow id (spec, 'In-flight limits', last row). */
import { createHmac } from 'node:crypto'
import type { Facts } from '../types.js'
import { bodyKind, isUnreadable, PEEK_BYTES } from './body-kind.js'
import { jsonField } from './json-fields.js'
import { fieldName, MOST_FIELDS, multipartField, UNCLEAR } from './multipart-fields.js'

/** The beginning of an object, also in UTF-16: many upstreams read JSON whatever its type says. */
const LIKE_JSON = /^[\s\0\uFEFF\uFFFD]*(?:\{|$)/

/**
 * The e-mail (lower-cased) from the query or a form, multipart or JSON body, else the flow id from the same places. If
 * a request names different values, only the upstream knows which one counts. All such requests share one key, so a
 * client neither gets a fresh counter for a value that the upstream ignores nor goes uncounted. The same goes for a body
 * that only the upstream can read. Names count in any letter case and with brackets, because some upstreams ignore them.
 * Returned as a keyed hash: neither logs nor counter keys ever hold the address.
 *
 * @param prefix the first bytes of the body; undefined if the body was not read
 * @param isLate true if the rest of the body had not arrived in time
 */
export function emailOrFlow(
  facts: Facts,
  prefix: Buffer | undefined,
  secret: Buffer,
  isLate = false,
): string | undefined {
  const query = fieldsOf(facts.query.slice(1))
  const body = fieldOf(facts, prefix, isLate)
  const read = (name: string) => [...query(name), ...body(name)]
  const email = onlyOne(read('email').map(one => (one === UNCLEAR ? one : one.trim().toLowerCase())))
  const flow = email === undefined ? onlyOne(read('flow')) : undefined
  const value = named(email, 'email') ?? named(flow, 'flow')
  return value && createHmac('sha256', secret).update(value).digest('base64url')
}

type Value = string | typeof UNCLEAR

function named(value: Value | undefined, what: string): string | undefined {
  if (value === UNCLEAR) return 'unclear'
  return value === undefined ? undefined : `${what}:${value}`
}

/** Returns a function that reads all values of a field in the body. */
function fieldOf(
  facts: Facts,
  prefix: Buffer | undefined,
  isLate: boolean,
): (name: string) => readonly Value[] {
  const kind = prefix && bodyKind(facts)
  if (prefix === undefined || kind === undefined) return () => []
  if (kind === 'other' && !LIKE_JSON.test(prefix.toString('utf8'))) return () => []
  // What follows in a long or a late body may override what its beginning says.
  if (isLate || prefix.length >= PEEK_BYTES || isUnreadable(facts, prefix)) return () => [UNCLEAR]
  if (kind === 'multipart') {
    return name => multipartField(facts.header('content-type') ?? '', prefix, name)
  }
  const text = prefix.toString('utf8')
  // Clients send JSON as a form, as curl does by default, and many upstreams read it as what it is.
  const form = kind === 'form' ? fieldsOf(text) : () => []
  return name => [...form(name), ...jsonField(text, name)]
}

/** The single distinct value, however often it occurs; empty values do not count. */
function onlyOne(values: readonly Value[]): Value | undefined {
  const different = new Set(values.filter(value => value !== ''))
  return different.size > 1 ? UNCLEAR : [...different][0]
}

/** The values of each field of a query or a form. Some upstreams take a semicolon for an ampersand. */
function fieldsOf(text: string): (name: string) => readonly Value[] {
  if (text.split(/[&;]/, MOST_FIELDS + 1).length > MOST_FIELDS) return () => [UNCLEAR]
  const readings = text.includes(';') ? [text, text.replaceAll(';', '&')] : [text]
  // URLSearchParams would drop a question mark at the beginning.
  const fields = readings.flatMap(one => [...new URLSearchParams(`&${one}`)])
  const named = fields.map(([name, value]) => [fieldName(name), value] as const)
  return name => named.filter(([other]) => other === name).map(([, value]) => value)
}
