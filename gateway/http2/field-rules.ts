/** The rules for the fields of a head or a trailer section (RFC 9113 section 8.2), with those of HTTP/1.1. */
import { WireError } from '../http1/message.js'
import { checkTrailers, MAX_TRAILER_FIELDS, MAX_TRAILERS } from '../http1/trailers.js'
import { StreamError } from './errors.js'
import type { BlockLimits } from './hpack/decoder.js'
import type { HeaderField } from './hpack/header-field.js'
import { PROTOCOL_ERROR } from './protocol.js'

export const TRAILER_LIMITS: BlockLimits = { fields: MAX_TRAILER_FIELDS, bytes: MAX_TRAILERS }

/** Checks a field behind the pseudo-header fields. @throws {StreamError} */
export function checkField({ name, value, kind }: HeaderField): void {
  if (kind === 'ordinary') return
  if (kind === 'te' && value.toLowerCase() === 'trailers') return
  throw malformed(name === '' ? 'an empty field name' : `the field ${name}`)
}

/** Trailers as a flat list. @throws {StreamError} */
export function trailersOf(list: readonly HeaderField[]): readonly string[] {
  const raw: string[] = []
  const names: string[] = []
  for (const field of list) {
    checkField(field)
    raw.push(field.name, field.value)
    names.push(field.name)
  }
  asStreamError(() => checkTrailers(names))
  return raw
}

/** Calls a check of HTTP/1.1: what it refuses is malformed here. @throws {StreamError} */
export function asStreamError<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof WireError ? malformed(error.message) : error
  }
}

export function malformed(what: string): StreamError {
  return new StreamError(PROTOCOL_ERROR, what)
}
