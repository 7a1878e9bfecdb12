/** An OAuth 2.0 server of another maker: oidc-provider, on a port that stays its own when it restarts. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { send } from '../../../helpers/http.js'
import type { Scope } from '../../../helpers/scope.js'

/** The package has no types. */
interface OidcProvider {
  readonly Provider: new (issuer: string, settings: object) => { callback(): RequestListener }
}
const { Provider } = (await import('oidc-provider' as string)) as OidcProvider

export const API = 'https://api.example.com'
/** What is said of a client in the claim `plan` of its tokens. */
const PLANS: Readonly<Record<string, string>> = { acme: 'enterprise', other: 'scale' }
const SECRET = 'the secret of a client'

interface Asked {
  readonly client?: 'acme' | 'other'
  readonly scope?: string
  /** The API that the token is for (RFC 8707). */
  readonly resource?: string
}

/**
 * Starts the issuer with a new key. It gives JWTs (RFC 9068) for APIs whose address begins with https, of three seconds for
 * those with `/short`; for any other it gives opaque tokens.
 */
export async function startOidcIssuer(t: Scope) {
  let server: Server | undefined
  let port = 0
  let keys = 0

  const stop = async () => {
    if (server === undefined) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    server = undefined
  }
  /** Starts, after `stop` on the same port, with another key. */
  const start = async () => {
    server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    keys += 1
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(privateKey)), kid: `key-${keys}`, use: 'sig', alg: 'RS256' }
    server.on('request', new Provider(issuer.url(), settingsWith(jwk)).callback())
  }
  const issuer = {
    url: () => `http://127.0.0.1:${port}`,
    jwks: () => `http://127.0.0.1:${port}/jwks`,
    start,
    stop,
    /** An access token, as a client gets one for itself (RFC 6749 section 4.4). */
    async token({ client = 'acme', scope = 'orders:read', resource = API }: Asked = {}): Promise<string> {
      const answer = await send(`${issuer.url()}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${client}:${encodeURIComponent(SECRET)}`).toString('base64')}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource }).toString(),
      })
      if (answer.status !== 200) throw new Error(answer.body)
      return answer.json<{ access_token: string }>().access_token
    },
  }
  await start()
  t.teardown(stop)
  return issuer
}

function settingsWith(jwk: object): object {
  return {
    jwks: { keys: [jwk] },
    clients: Object.keys(PLANS).map(client_id => ({
      ...{ client_id, client_secret: SECRET, grant_types: ['client_credentials'] },
      ...{ redirect_uris: [], response_types: [] },
    })),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'orders:read orders:write',
          accessTokenFormat: resource.startsWith('https:') ? 'jwt' : 'opaque',
          accessTokenTTL: resource.endsWith('/short') ? 3 : 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    ttl: {
      ClientCredentials: (_: unknown, token: { resourceServer: { accessTokenTTL: number } }) =>
        token.resourceServer.accessTokenTTL,
    },
    extraTokenClaims: (_: unknown, { clientId }: { clientId: string }) => ({ plan: PLANS[clientId] }),
  }
}
