/**
 * Decodes bytes into entries: the media types a form or a client may send (docs/forms.md). Independent of the schema.
 */

import { Busboy, type BusboyInstance } from '@fastify/busboy'
import { isJsonObject, JsonTextError, type JsonValue, parseJson } from '../../json.js'
import type { FieldError } from './messages.js'

/** One submitted name with its text, a JSON value that keeps its type, or a chosen file. */
export type FormEntry =
  | { readonly name: string; readonly text: string }
  | { readonly name: string; readonly json: JsonValue }
  | { readonly name: string; readonly file: true }

export const MAX_BODY_BYTES = 1024 * 1024
const MAX_ENTRIES = 5000
const MAX_NAMES = 1000

/** A body that cannot be read at all. */
export class BodyError extends Error {
  readonly error: FieldError
  constructor(code: string, message: string) {
    super(message)
    this.error = { path: '', code, message }
  }
}

function tooManyEntries(): BodyError {
  return new BodyError('too_large', `The form has more than ${MAX_ENTRIES} entries.`)
}

export const FORM_TYPES = [
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/json',
] as const

/** Reads a body by its media type. Throws BodyError. */
export async function decodeBody(contentType: string | undefined, body: Buffer): Promise<FormEntry[]> {
  const mediaType = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (body.length > MAX_BODY_BYTES) throw new BodyError('too_large', 'The body is larger than 1 MiB.')
  const entries = await decodeAs(mediaType, contentType ?? '', body)
  if (entries.length > MAX_ENTRIES) throw tooManyEntries()
  if (new Set(entries.map(({ name }) => name)).size > MAX_NAMES) {
    throw new BodyError('too_large', `The form has more than ${MAX_NAMES} different names.`)
  }
  return entries
}

async function decodeAs(
  mediaType: string | undefined,
  contentType: string,
  body: Buffer,
): Promise<FormEntry[]> {
  switch (mediaType) {
    case 'application/x-www-form-urlencoded':
      return decodeUrlEncoded(body)
    case 'multipart/form-data':
      return decodeMultipart(contentType, body)
    case 'application/json':
      return decodeJson(body)
    default:
      throw new BodyError(
        'unsupported_media_type',
        'Send application/x-www-form-urlencoded, multipart/form-data or application/json.',
      )
  }
}

/** As the parser of application/x-www-form-urlencoded reads bytes (WHATWG URL standard, section 5.1). */
function decodeUrlEncoded(body: Buffer): FormEntry[] {
  const bytes = body.toString('latin1')
  let count = 0
  for (const _ of bytes.matchAll(/[^&]+/g)) if (++count > MAX_ENTRIES) throw tooManyEntries()
  // Escaped, a byte that is no ASCII is decoded together with those around it.
  const text = bytes.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16)}`)
  // A question mark at the very beginning would not count as part of the first name.
  return [...new URLSearchParams(`&${text}`)].map(([name, text]) => ({ name, text }))
}

function decodeJson(body: Buffer): FormEntry[] {
  let document: JsonValue
  try {
    document = parseJson(body.toString('utf8'))
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    throw new BodyError(error.code === 'too_deep' ? 'too_deep' : 'malformed', `The body ${error.message}.`)
  }
  if (!isJsonObject(document)) throw new BodyError('malformed', 'The body has to be a JSON object.')
  return Object.entries(document).map(([name, value]) =>
    typeof value === 'string' ? { name, text: value } : { name, json: value },
  )
}

/** A boundary as RFC 2046 section 5.1.1 allows it; of several parameters the first one is used. */
const BOUNDARY = /;[ \t]*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'()+,./:=?-]{1,70})[ \t]*(?:;|$))/i

/**
 * Reads multipart/form-data as browsers send it (WHATWG HTML); of a file only the field's name is kept. Throws
 * BodyError on a missing or truncated boundary.
 */
function decodeMultipart(contentType: string, body: Buffer): Promise<FormEntry[]> {
  return new Promise((resolve, reject) => {
    const malformed = () =>
      reject(new BodyError('malformed', 'The multipart body is cut off or does not fit its boundary.'))
    const [, quoted, bare] = BOUNDARY.exec(contentType) ?? []
    const boundary = quoted ?? bare
    if (boundary === undefined) return malformed()
    // Every boundary costs the parser time, even if no part follows it.
    if (hasTooMany(body, boundary)) return reject(tooManyEntries())
    const entries: FormEntry[] = []
    let parser: BusboyInstance
    try {
      parser = new Busboy({
        headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
        // Only a file name makes a part a file; its media type does not.
        isPartAFile: (_name, _type, fileName) => fileName !== undefined,
        // The whole body is at hand. A part beyond this would pause the parser, for ever if it is one that it skips.
        fileHwm: MAX_BODY_BYTES + 1,
        // One more than allowed, so that the caller sees that there were too many.
        limits: { parts: MAX_ENTRIES + 1, fieldSize: MAX_BODY_BYTES, headerSize: 16 * 1024, headerPairs: 20 },
      })
    } catch {
      malformed()
      return
    }
    parser.on('field', (name, text) => entries.push({ name: unescapeName(name), text }))
    parser.on('file', (name, stream, fileName) => {
      let bytes = 0
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      stream.on('error', malformed)
      stream.on('end', () => {
        // A file input without a selection still sends a part, empty and without a file name.
        if (bytes > 0 || fileName !== '') entries.push({ name: unescapeName(name), file: true })
      })
    })
    parser.on('error', malformed)
    parser.on('finish', () => resolve(entries))
    parser.end(body)
  })
}

/** True when more lines begin with a boundary than there may be parts. */
function hasTooMany(body: Buffer, boundary: string): boolean {
  const delimiter = `\r\n--${boundary}`
  let at = -1
  for (let count = 0; count <= MAX_ENTRIES + 1; count++) {
    at = body.indexOf(delimiter, at + 1)
    if (at < 0) return false
  }
  return true
}

/** Browsers escape exactly these three in names; any other percent sign stands for itself. */
function unescapeName(name: string | undefined): string {
  return (name ?? '').replaceAll('%22', '"').replaceAll('%0D', '\r').replaceAll('%0A', '\n')
}
