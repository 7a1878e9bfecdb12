/**
 * Determines whose settings a request may see. There is no sign-in: a signed cookie ties an identity to the browser
 * that registered it, for a limited time.
 */
import { readCookie, setCookie } from './cookies.js'
import type { IdentityRequest } from './http.js'
import type { Signer } from './secret.js'

const COOKIE = 'sluice_identity'
const SECONDS = 3600

/** The header fields that tie the client to the identity `id`. `now` is in milliseconds. */
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
