/** multipart/form-data as browsers send it (WHATWG HTML, "multipart/form-data encoding algorithm"). */
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import { BodyError, type FormEntry, MAX_BODY_BYTES, MAX_ENTRIES, tooManyEntries } from './entry.js'

/** A boundary as RFC 2046 section 5.1.1 allows it; of several parameters the first one is used. */
const BOUNDARY = /;[ \t]*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'()+,./:=?-]{1,70})[ \t]*(?:;|$))/i

/** Reads all parts; of a file only the field's name is kept. Throws BodyError on a missing or truncated boundary. */
export function decodeMultipart(contentType: string, body: Buffer): Promise<FormEntry[]> {
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
