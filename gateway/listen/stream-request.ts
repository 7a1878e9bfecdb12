/** The request head of an HTTP/2 stream, with fields as in HTTP/1.1 (RFC 9113 section 8.3). */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http2'
import { fieldsOf } from '../http1/fields.js'
import type { CountedBody, IncomingRequest, Peer } from '../message.js'

/** `joined` and `raw` are the stream's fields as Node provides them: by name, and as a flat list. */
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
    // WebSocket over HTTP/2 (RFC 8441) is not offered, so clients do not request it.
    upgrade: false,
    peer,
    body,
  }
}

/** Turns `:authority` into Host, and joins the Cookie fields into one. */
function asHttp1(joined: IncomingHttpHeaders, raw: readonly string[]): string[] {
  const authority = joined[':authority']
  const fields = authority === undefined ? [] : ['host', authority]
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    if (name[0] === ':' || name === 'cookie') continue
    // Skip a Host equal to `:authority`. If they differ, the two Host fields are rejected later (section 8.3.1).
    if (name === 'host' && value.toLowerCase() === authority?.toLowerCase()) continue
    fields.push(name, value)
  }
  if (joined.cookie !== undefined) fields.push('cookie', joined.cookie)
  return fields
}
