import { fits } from '../secrets.js'
import type { Request } from './http.js'

/** The challenge of a 401 response of the management API (RFC 9110, section 11.6.1). */
export const wwwAuthenticate = 'Api-Key realm="management"'

/** The credential of an `Authorization` header with one of these schemes, in any letter case. */
export function credential(request: Request, schemes: readonly string[]): string | undefined {
  const [, scheme, value] = /^(\S+) +(\S+)$/.exec(request.headers.authorization ?? '') ?? []
  return scheme !== undefined && schemes.includes(scheme.toLowerCase()) ? value : undefined
}

/**
 * The token of `Authorization: Bearer <token>`, or the token alone: Okta's header authentication sends exactly what
 * was typed.
 */
export const bearer = (request: Request): string | undefined =>
  /^(?:bearer +)?(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]

/** Compares with every key, so that the time taken does not reveal which one was close. */
export function isKeyOf(presented: string | undefined, hashes: readonly Buffer[]): boolean {
  if (presented === undefined) return false
  return hashes.map(hash => fits(presented, hash)).includes(true)
}
