/** The text of a message around its content: the head, and the lines around chunks. */

/**
 * A whole head with its empty line, as Latin-1, from its start line and a flat list of fields. Nothing is validated:
 * the parts must come from this parser or a source just as strict (HTTP/2, the configuration).
 */
export function headText(startLine: string, fields: readonly string[]): string {
  return `${startLine}\r\n${lines(fields)}\r\n`
}

/** The line before a chunk of `bytes` bytes, which CRLF must follow (RFC 9112 section 7.1). */
export function chunkPrefix(bytes: number): string {
  return `${bytes.toString(16)}\r\n`
}

/** The end of a chunked body, with a flat list of trailer fields. */
export function lastChunk(trailers: readonly string[] = []): string {
  return `0\r\n${lines(trailers)}\r\n`
}

function lines(fields: readonly string[]): string {
  let text = ''
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
  return text
}

const SECOND_MS = 1_000

let written = ''
let second = -1

/** The current value of the Date field (RFC 9110 section 6.6.1), formatted once a second. */
export function dateNow(): string {
  const now = Math.trunc(Date.now() / SECOND_MS)
  if (now !== second) {
    second = now
    written = new Date(now * SECOND_MS).toUTCString()
  }
  return written
}
