/** Which fields of an upstream's response are passed on, and which are added. */
import { HOP_BY_HOP_FIELDS } from '../../config/words/words.js'
import { lowerName } from '../http1/names.js'
import type { Fields } from '../message.js'
import { toClientPaths } from './client-paths.js'
import { authorityOf, namedByConnection } from './headers.js'
import { INTERNAL } from './request-fields.js'
import { passedTrailers } from './trailers.js'
import type { Exchange } from './transport.js'

const NOT_OF_ANSWERS = new Set<string>(HOP_BY_HOP_FIELDS)

/** The only field of ours that is added to the upstream's instead of replacing it. */
const CONTINUED = 'access-control-expose-headers'

/**
 * The flat fields of the response to the client: the upstream's without connection fields, and ours instead of the
 * upstream's of the same names. Clients never see internal fields. 1xx and 204 have no Content-Length (RFC 9110 section
 * 8.6).
 *
 * @param removed lower-case names of further upstream fields that are removed
 */
export function answerFields(
  status: number,
  upstream: Fields,
  own: readonly string[],
  removed?: readonly string[],
): string[] {
  const { raw, names } = upstream
  const named = namedByConnection(upstream)
  const lengthless = status < 200 || status === 204
  const fields: string[] = []
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    if (NOT_OF_ANSWERS.has(name) || isReplaced(name, own) || removed?.includes(name)) continue
    if (name.startsWith(INTERNAL)) continue
    if (name === 'content-length' ? lengthless : named?.has(name)) continue
    fields.push(raw[2 * i] as string, raw[2 * i + 1] as string)
  }
  for (const part of own) fields.push(part)
  return fields
}

/** As `answerFields`, for the response to an exchange, with what its route changes: its paths are those that the client knows. */
export function exchangeAnswerFields(
  { req, changes, answerFields: own, removedFields, addedFields }: Exchange,
  status: number,
  upstream: Fields,
): string[] {
  const fields = answerFields(status, upstream, own, removedFields)
  const rewrite = changes?.path
  if (rewrite !== undefined) toClientPaths(fields, fields.length - own.length, rewrite, authorityOf(req))
  if (addedFields !== undefined) for (const part of addedFields) fields.push(part)
  return fields
}

/** The trailers of the response to an exchange: what is replaced or removed in its head does not come back behind the body. */
export function exchangeTrailers(
  { answerFields: own, removedFields }: Exchange,
  trailers: readonly string[],
): readonly string[] {
  return passedTrailers(trailers, name => !isReplaced(name, own) && removedFields?.includes(name) !== true)
}

/** True when the flat list `own` replaces the upstream's field of this name. */
function isReplaced(name: string, own: readonly string[]): boolean {
  if (name === CONTINUED) return false
  for (let i = 0; i < own.length; i += 2) {
    const other = own[i] as string
    if (other.length === name.length && lowerName(other) === name) return true
  }
  return false
}

/** As `answerFields`, for an interim response: without our fields, and without the upstream's of the same names. */
export function interimFields(
  status: number,
  upstream: Fields,
  own: readonly string[],
  removed: readonly string[] = [],
): string[] {
  const names = own.filter((_, i) => i % 2 === 0).map(lowerName)
  return answerFields(status, upstream, [], [...removed, ...names])
}
