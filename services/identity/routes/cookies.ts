/** Cookies of the self-service pages (RFC 6265): not readable by scripts, not sent with other sites' forms. */
import type { IdentityRequest } from '../http.js'
import type { Signer } from '../secret.js'

/** The value of a cookie, the first when it is sent twice. */
export function readCookie(request: IdentityRequest, name: string): string | undefined {
  const start = `${name}=`
  const pairs = (request.header('cookie') ?? '').split(/[;,]/).map(pair => pair.trim())
  return pairs.find(pair => pair.startsWith(start))?.slice(start.length)
}

/** A Set-Cookie field. Without `seconds` it is a session cookie. */
export function setCookie(request: IdentityRequest, name: string, value: string, seconds?: number): string {
  return [
    `${name}=${value}`,
    'Path=/self-service',
    'HttpOnly',
    'SameSite=Lax',
    ...(seconds === undefined ? [] : [`Max-Age=${seconds}`]),
    ...(request.header('x-forwarded-proto') === 'https' ? ['Secure'] : []),
  ].join('; ')
}

const COOKIE = 'sluice_identity'
const SECONDS = 3600

/**
 * The header fields that tie the client to the identity `id`: there is no sign-in, so whose settings a request may see
 * is said by a signed cookie of the browser that registered, for a limited time. `now` is in milliseconds.
 */
export function holdIdentity(
  signer: Signer,
  request: IdentityRequest,
  id: string,
  now: number,
): Record<string, string> {
  const expires = String(now + SECONDS * 1000)
  const value = `${id}.${expires}.${signer.sign('holder', request.project, id, expires)}`
  return { 'set-cookie': setCookie(request, COOKIE, value, SECONDS) }
}

/** The id of the identity the client is tied to; undefined when there is none or its time has expired. */
export function heldIdentity(signer: Signer, request: IdentityRequest, now: number): string | undefined {
  const [id = '', expires = '', signed = ''] = (readCookie(request, COOKIE) ?? '').split('.')
  if (!signer.hasSigned(signed, 'holder', request.project, id, expires)) return undefined
  return now < Number(expires) ? id : undefined
}
