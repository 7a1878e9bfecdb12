/** What a request asks of its connection, besides a response. */
import { listHas } from './fields.js'
import type { ParsedRequest } from './message.js'

/** WebSocket is the only protocol that is switched to; any other offer is ignored (RFC 9110 section 7.8). */
export function asksForWebSocket({ method, version, fields }: ParsedRequest): boolean {
  const offered = fields.get('upgrade')
  if (offered === undefined || method !== 'GET' || version !== '1.1') return false
  return offered.toLowerCase() === 'websocket' && listHas(fields.get('connection') ?? '', 'upgrade')
}

/** True when the client waits for a 100 before it sends the body (RFC 9110 section 10.1.1). */
export function expectsContinue({ version, fields }: ParsedRequest): boolean {
  return version === '1.1' && fields.get('expect')?.toLowerCase() === '100-continue'
}

/** True when trailers may be sent to the client (RFC 9110 section 10.1.4). */
export function takesTrailers({ fields }: ParsedRequest): boolean {
  return listHas(fields.get('te') ?? '', 'trailers')
}
