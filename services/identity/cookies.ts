/** Cookies of the self-service pages (RFC 6265): not readable by scripts, not sent with other sites' forms. */
import type { IdentityRequest } from './http.js'

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
