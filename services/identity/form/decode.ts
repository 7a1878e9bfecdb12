/**
 * Decodes bytes into entries: the media types a form or a client may send (docs/forms.md). Independent of the schema.
 */
import { BodyError, type FormEntry, MAX_BODY_BYTES, MAX_ENTRIES, MAX_NAMES, tooManyEntries } from './entry.js'
import { isJsonObject, JsonTextError, type JsonValue, parseJson } from './json.js'
import { decodeMultipart } from './multipart.js'

const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

/** The media types of forms. */
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

/** The parser of application/x-www-form-urlencoded (WHATWG URL standard, section 5.1). */
export function decodeUrlEncoded(body: Buffer): FormEntry[] {
  const entries: FormEntry[] = []
  // Decoded as latin1, so that malformed UTF-8 is replaced only after the percent signs are decoded.
  for (const [piece] of body.toString('latin1').matchAll(/[^&]+/g)) {
    const equals = piece.indexOf('=')
    const name = equals < 0 ? piece : piece.slice(0, equals)
    entries.push({
      name: percentDecode(name),
      text: equals < 0 ? '' : percentDecode(piece.slice(equals + 1)),
    })
    // One more than allowed, so that the caller sees that there were too many.
    if (entries.length > MAX_ENTRIES) break
  }
  return entries
}

/** `text` has one byte in each character. A percent sign without two hexadecimal digits is kept. */
function percentDecode(text: string): string {
  const bytes = Buffer.allocUnsafe(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text.charCodeAt(at)
    const escaped = byte === PERCENT ? 16 * hexDigit(text, at + 1) + hexDigit(text, at + 2) : Number.NaN
    if (Number.isNaN(escaped)) bytes[length++] = byte === PLUS ? SPACE : byte
    else {
      bytes[length++] = escaped
      at += 2
    }
  }
  return bytes.toString('utf8', 0, length)
}

/** The digit's value; NaN if there is none. */
function hexDigit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
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
