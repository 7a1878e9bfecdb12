import type { JsonObject } from '../model.js'
import type { CallProvider } from './call.js'
import { ConnectionFlowError, ProviderError } from './error.js'
import type { ExternalSettings } from './settings.js'

/** The provider's response to a code (the spec's "External token set"). `expiry_date` is epoch ms. */
export interface TokenSet {
  readonly access_token: string
  /** Empty when the provider returned none, as some do when consent was given before. */
  readonly refresh_token: string
  readonly scope: string
  readonly token_type: string
  readonly expiry_date: number
}

const longestToken = 8192
/** Lifetime of an access token when the provider does not state it (RFC 6749, section 5.1, leaves it open). */
const usualLifeSeconds = 3600

export type OAuth = ReturnType<typeof createOAuth>

/**
 * The provider's OAuth endpoints (RFC 6749, sections 4.1 and 6). The token calls throw ProviderError; all throw
 * ConnectionFlowError 501 when the operator has configured no client.
 */
export function createOAuth(settings: ExternalSettings, call: CallProvider) {
  const { authorizeUrl, tokenUrl, scopes } = settings

  function client(): { id: string; secret: string } {
    if (settings.client) return settings.client
    throw new ConnectionFlowError(
      501,
      'The external provider is not set up: the operator has to set EXTERNAL_CLIENT_ID and EXTERNAL_CLIENT_SECRET.',
    )
  }

  async function ask(grant: Record<string, string>, signal: AbortSignal): Promise<TokenSet> {
    const { id, secret } = client()
    const form = { ...grant, client_id: id, client_secret: secret }
    const { status, body } = await call({ method: 'POST', url: new URL(tokenUrl), form }, signal)
    if (status !== 200) {
      const why = typeof body.error === 'string' && /^[a-z_]{1,40}$/.test(body.error) ? `: ${body.error}` : ''
      throw new ProviderError(`The provider refused the ${grant.grant_type} (${status}${why})`, status)
    }
    return readTokens(body)
  }

  return {
    requireClient: () => void client(),
    authorizationUrl(state: string, redirectUrl: string): string {
      const url = new URL(authorizeUrl)
      const asked = {
        ...{ response_type: 'code', client_id: client().id, redirect_uri: redirectUrl, scope: scopes, state },
        // A refresh token is only given on request, and on later consents only after a new prompt.
        ...{ access_type: 'offline', prompt: 'consent' },
      }
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
      return url.href
    },
    exchange: (code: string, redirectUrl: string, signal: AbortSignal) =>
      ask({ grant_type: 'authorization_code', code, redirect_uri: redirectUrl }, signal),
    refresh: (refreshToken: string, signal: AbortSignal) =>
      ask({ grant_type: 'refresh_token', refresh_token: refreshToken }, signal),
  }
}

function readTokens(body: JsonObject): TokenSet {
  const { access_token, refresh_token = '', scope = '', token_type = 'Bearer', expires_in } = body
  const seconds = Number(expires_in)
  const life = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 1e9) : usualLifeSeconds
  if (!isToken(access_token) || !(refresh_token === '' || isToken(refresh_token))) {
    throw new ProviderError('The provider returned no usable access_token')
  }
  return {
    access_token,
    refresh_token,
    scope: String(scope),
    token_type: String(token_type),
    expiry_date: Math.floor(Date.now() + life * 1000),
  }
}

/** True for a token that can be sent in an Authorization header. */
export const isToken = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= longestToken && /^[\x21-\x7e]+$/.test(value)
