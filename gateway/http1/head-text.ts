/** What is written of a message beside its content: its head, and the lines around chunks. */

/**
 * A whole head, its empty line included, from its first line and a flat list of fields, as Latin-1. It looks at nothing:
 * what it is given must have been read by this grammar or another as strict (HTTP/2, the configuration).
 */
export function headText(startLine: string, fields: readonly string[]): string {
  return `${startLine}\r\n${lines(fields)}\r\n`
}

/** The line before a chunk of so many bytes; after them comes CRLF (RFC 9112 section 7.1). */
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
