/**
 * Keeps other sites from posting our forms through somebody's browser. Browsers say where a post comes from
 * (Sec-Fetch-Site, else Origin); and once a browser has been shown a form, its posts carry that form's token as well.
 * Programs that are no browser send neither, and hold no cookie that another site could use.
 */
import { randomBytes } from 'node:crypto'
import { readCookie, setCookie } from './cookies.js'
import type { Entry } from './form/entry.js'
import { HttpError, mediaTypeOf, type Request } from './http.js'
import { isSame, signature } from './secret.js'

const COOKIE = 'sluice_csrf'
/** The name of the hidden field. */
export const TOKEN_FIELD = 'csrf_token'

/** Throws HttpError when the request was made by another site's page. */
export function refuseForeign(request: Request): void {
  const site = request.header('sec-fetch-site')
  if (site !== undefined ? site === 'same-origin' || site === 'none' : isOwnOrigin(request)) return
  throw new HttpError(
    403,
    'foreign',
    'This was sent from another site. Open the form here and send it again.',
  )
}

function isOwnOrigin(request: Request): boolean {
  const origin = request.header('origin')
  if (origin === undefined) return true
  const [scheme = ''] = origin.split('://', 1)
  const own = `${scheme}://${request.header('x-forwarded-host') ?? request.header('host') ?? ''}`
  // Parsing leaves out a port that goes without saying.
  return URL.canParse(origin) && URL.canParse(own) && new URL(origin).host === new URL(own).host
}

/** The token for a form that is about to be shown, and the fields that make the browser remember its other half. */
export function issueToken(secret: Buffer, request: Request) {
  const known = readCookie(request, COOKIE)
  const half = known ?? randomBytes(18).toString('base64url')
  const headers: Record<string, string> =
    known === undefined ? { 'set-cookie': setCookie(request, COOKIE, half) } : {}
  return { token: tokenFor(secret, half), headers }
}

/** True unless a browser that was shown a form posts one without its token. JSON no other site can post unasked. */
export function hasToken(secret: Buffer, request: Request, entries: readonly Entry[]): boolean {
  const half = readCookie(request, COOKIE)
  if (half === undefined || mediaTypeOf(request) === 'application/json') return true
  return entries.some(
    entry => entry.name === TOKEN_FIELD && 'text' in entry && isSame(entry.text, tokenFor(secret, half)),
  )
}

function tokenFor(secret: Buffer, half: string): string {
  return signature(secret, 'form', half)
}
