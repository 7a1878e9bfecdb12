/**
 * Keeps other sites from posting our forms through a user's browser. Browsers say where a post comes from
 * (Sec-Fetch-Site, else Origin); and once a browser has been shown a form, its posts must carry that form's token as
 * well. Programs other than browsers send neither, and have no cookie that another site could use.
 */
import { randomBytes } from 'node:crypto'
import { HttpError } from '../../http/errors.js'
import { mediaTypeOf } from '../../http/server.js'
import type { FormEntry } from '../decode/decode.js'
import type { IdentityRequest } from '../http.js'
import type { Signer } from '../secret.js'
import { readCookie, setCookie } from './cookies.js'

const COOKIE = 'sluice_csrf'
const PURPOSE = 'form'
/** The name of the hidden field. */
export const TOKEN_FIELD = 'csrf_token'

/** A form's token, and the header fields that store its other half in the browser. */
export interface FormToken {
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
}

/** Throws HttpError when the request was made by another site's page. */
export function refuseForeign(request: IdentityRequest): void {
  const site = request.header('sec-fetch-site')
  if (site !== undefined ? site === 'same-origin' || site === 'none' : isOwnOrigin(request)) return
  throw new HttpError(
    403,
    'This was sent from another site. Open the form here and send it again.',
    'foreign',
  )
}

function isOwnOrigin(request: IdentityRequest): boolean {
  const origin = request.header('origin')
  if (origin === undefined) return true
  const [scheme = ''] = origin.split('://', 1)
  const own = `${scheme}://${request.header('x-forwarded-host') ?? request.header('host') ?? ''}`
  // Parsing drops a default port.
  return URL.canParse(origin) && URL.canParse(own) && new URL(origin).host === new URL(own).host
}

export function issueToken(signer: Signer, request: IdentityRequest): FormToken {
  const known = readCookie(request, COOKIE)
  const half = known ?? randomBytes(18).toString('base64url')
  const token = signer.sign(PURPOSE, half)
  return known === undefined
    ? { token, headers: { 'set-cookie': setCookie(request, COOKIE, half) } }
    : { token, headers: {} }
}

/**
 * True unless a browser that was shown a form posts one without its token. Other sites cannot post JSON without our
 * consent.
 */
export function hasToken(signer: Signer, request: IdentityRequest, entries: readonly FormEntry[]): boolean {
  const half = readCookie(request, COOKIE)
  if (half === undefined || mediaTypeOf(request.header('content-type')) === 'application/json') return true
  return entries.some(
    entry => entry.name === TOKEN_FIELD && 'text' in entry && signer.hasSigned(entry.text, PURPOSE, half),
  )
}
