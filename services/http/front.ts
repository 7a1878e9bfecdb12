/** Whether a request comes from the gateway in front, which says in `x-sluice-*` fields who its client is. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const FACTS = 'x-sluice-'
const SECRET_FIELD = 'x-sluice-secret'

/**
 * The one place that decides whether `x-sluice-project`, `x-sluice-network` and the other facts are believed. A service
 * listens on an address that others of this machine reach too, so the address proves nothing.
 *
 * With a `secret`, the service belongs to a gateway: requests that carry it in `x-sluice-secret` come from the gateway
 * and their facts are true; all others are not to be answered (returns false). Without one there is no gateway to
 * believe: the service answers everybody, and the facts are removed from `headers`.
 */
export function isAdmitted(headers: IncomingHttpHeaders, secret: string | undefined): boolean {
  const sent = headers[SECRET_FIELD]
  delete headers[SECRET_FIELD]
  if (secret !== undefined) return typeof sent === 'string' && timingSafeEqual(hash(sent), hash(secret))
  for (const name of Object.keys(headers)) if (name.startsWith(FACTS)) delete headers[name]
  return true
}

/** The answer to a request that is not admitted, with status 403: problem details (RFC 9457). */
export const NOT_ADMITTED = JSON.stringify({
  type: 'about:blank',
  title: 'Forbidden',
  status: 403,
  detail: 'This service answers only its gateway: use the address of the gateway.',
})

/** Hashes have equal length, as the comparison needs. */
const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
