/** The head of an HTTP/2 stream's request, with its fields as HTTP/1.1 would carry them (RFC 9113 section 8.3). */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http2'
import { fieldsOf } from '../http1/fields.js'
import type { CountedBody, IncomingRequest, Peer } from '../message.js'

/** `joined` and `raw` are the stream's fields as Node gives them: by name, and flat. */
export function requestOfStream(
  joined: IncomingHttpHeaders,
  raw: readonly string[],
  peer: Peer,
  body: CountedBody | undefined,
): IncomingRequest {
  return {
    id: randomUUID(),
    method: joined[':method'] ?? '',
    target: joined[':path'] ?? '',
    version: '2.0',
    fields: fieldsOf(asHttp1(joined, raw)),
    // A WebSocket over HTTP/2 (RFC 8441) is not offered, so no client asks for one.
    upgrade: false,
    peer,
    body,
  }
}

/** Host for `:authority`, and one Cookie. */
function asHttp1(joined: IncomingHttpHeaders, raw: readonly string[]): string[] {
  const authority = joined[':authority']
  const fields = authority === undefined ? [] : ['host', authority]
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    if (name[0] === ':' || name === 'cookie') continue
    // Once is enough where both say the same; where they do not, two Host fields are refused (section 8.3.1).
    if (name === 'host' && value.toLowerCase() === authority?.toLowerCase()) continue
    fields.push(name, value)
  }
  if (joined.cookie !== undefined) fields.push('cookie', joined.cookie)
  return fields
}
