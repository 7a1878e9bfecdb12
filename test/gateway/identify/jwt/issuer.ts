/** An issuer for the tests: it makes keys and tokens, and serves its key set on a port of its own. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { startApp } from '../../../helpers/http.js'
import type { Scope } from '../../../helpers/scope.js'

export interface Key {
  readonly kid: string
  readonly alg: string
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
  readonly jwk: object
}

export async function newKey(kid: string, alg = 'ES256'): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export const ISSUER = 'https://idp.example/'
export const AUDIENCE = 'api'

interface TokenOptions {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: object
  readonly issuer?: string
  /** Null for a token without `aud`. */
  readonly audience?: string | null
  readonly expires?: string | number
}

/** A token of `key`; what is left out is right. */
export function token(key: Key, { claims = {}, header, issuer, audience, expires }: TokenOptions = {}) {
  const jwt = new SignJWT({ azp: 'acme', ...claims })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header })
    .setIssuer(issuer ?? ISSUER)
    .setIssuedAt()
    .setExpirationTime(expires ?? '5m')
  if (audience !== null) jwt.setAudience(audience ?? AUDIENCE)
  return jwt.sign(key.privateKey)
}

/** Serves a key set, and counts how often it is asked for. */
export async function startIssuer(t: Scope, keys: readonly Key[]) {
  const issuer = {
    keys,
    asked: 0,
    /** What it answers in place of its keys. */
    body: undefined as string | undefined,
    status: 200,
    /** In ms, from when it is asked until it answers what it has when it is asked. */
    delay: 0,
    url: '',
  }
  const url = await startApp(t, (_req, res) => {
    issuer.asked += 1
    res.statusCode = issuer.status
    const body = issuer.body ?? JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) })
    setTimeout(() => res.end(body), issuer.delay)
  })
  issuer.url = `${url}/jwks.json`
  return issuer
}
