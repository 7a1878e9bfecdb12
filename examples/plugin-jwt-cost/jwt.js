/** JSON Web Tokens as far as a gateway needs them (RFC 7519, RFC 8725): one algorithm, and an end. */
import { createHmac, createPublicKey, timingSafeEqual, verify as verifySignature } from 'node:crypto'

const LONGEST_TOKEN = 8192

/**
 * Returns a function that gives a token's claims, or undefined when its signature, times, issuer or audience are not good.
 * Tokens without `exp` are refused: they could never be taken back. Throws when the key does not fit the algorithm.
 */
export function verifier({ algorithm, key, issuer, audience }) {
  const isSigned = algorithm === 'HS256' ? hmacOf(key) : rsaOf(key)
  return (token, nowSeconds) => {
    if (token.length > LONGEST_TOKEN) return undefined
    const [head = '', body = '', signature = ''] = token.split('.')
    // The header comes from the sender: it may confirm what is configured, never choose (RFC 8725, 3.1).
    if (jsonOf(head)?.alg !== algorithm) return undefined
    if (!isSigned(`${head}.${body}`, Buffer.from(signature, 'base64url'))) return undefined
    const claims = jsonOf(body)
    const { exp, nbf, iss, aud } = claims ?? {}
    if (typeof exp !== 'number' || exp <= nowSeconds) return undefined
    if (nbf !== undefined && !(nbf <= nowSeconds)) return undefined
    if (issuer !== undefined && iss !== issuer) return undefined
    if (audience !== undefined && ![aud].flat().includes(audience)) return undefined
    return claims
  }
}

function hmacOf(secret) {
  return (text, signature) => {
    const expected = createHmac('sha256', secret).update(text).digest()
    return expected.length === signature.length && timingSafeEqual(expected, signature)
  }
}

function rsaOf(pem) {
  const key = createPublicKey(pem)
  if (key.asymmetricKeyType !== 'rsa') throw new Error('RS256 needs an RSA public key')
  return (text, signature) => verifySignature('RSA-SHA256', Buffer.from(text), key, signature)
}

function jsonOf(part) {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
