/** Checks one token (RFC 7519, RFC 8725). The home file of jose. */
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { hasDuplicateName } from './claims.js'

export type Claims = JWTPayload
export type Keys = JSONWebKeySet
/** Finds the key that a token was signed with. */
export type KeyOf = JWTVerifyGetKey

export interface TokenSettings {
  readonly issuer: string
  readonly audience: string | readonly string[]
  /** The claim that has to contain it: `aud` (RFC 7519 section 4.1.3), or another where the issuer sends none. */
  readonly audienceClaim: string
  readonly algorithms: readonly string[]
  /** In milliseconds. */
  readonly clockTolerance: number
}

/** Why a token is not accepted, in a word or two. */
export class WrongToken extends Error {}

/** In characters. */
const LONGEST = 16 * 1024
/** RFC 8725 section 3.11: a token that was made for another purpose, such as a logout, is none for access. */
const TYPES = ['jwt', 'at+jwt']

export const keyFinder = (keys: Keys): KeyOf => createLocalJWKSet(keys)

/** True if a key set has no key such as the token names. */
export function isUnknownKey(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey
}

/** The claims of a valid token. Rejects with WrongToken, or with another error if the token cannot be checked. */
export async function verify(token: string, keyOf: KeyOf, settings: TokenSettings): Promise<Claims> {
  if (token.length > LONGEST) throw new WrongToken('too long')
  const parts = token.split('.')
  if (parts.length !== 3) throw new WrongToken('malformed')
  if (parts.slice(0, 2).some(part => hasDuplicateName(textOf(part)))) throw new WrongToken('duplicate claim')
  const { issuer, audienceClaim, algorithms, clockTolerance } = settings
  const audience = [settings.audience].flat() as readonly string[]
  let cannotCheck: unknown
  const keyOrFault: KeyOf = async (header, given) => {
    try {
      return await keyOf(header, given)
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) cannotCheck = error
      throw error
    }
  }
  try {
    const { typ } = decodeProtectedHeader(token)
    if (
      typ !== undefined &&
      !TYPES.includes(
        String(typ)
          .toLowerCase()
          .replace(/^application\//, ''),
      )
    ) {
      throw new WrongToken('another type')
    }
    // Before its key is looked for: those of other issuers are not to be asked for here.
    if (decodeJwt(token).iss !== issuer) throw new WrongToken('claim iss')
    const { payload } = await jwtVerify(token, keyOrFault, {
      ...{ issuer, algorithms: [...algorithms] },
      ...{ clockTolerance: clockTolerance / 1000, requiredClaims: ['exp'] },
    })
    const meant = Object.hasOwn(payload, audienceClaim) ? [payload[audienceClaim]].flat() : []
    if (!meant.some(one => audience.includes(one as string))) throw new WrongToken(`claim ${audienceClaim}`)
    return payload
  } catch (error) {
    if (cannotCheck !== undefined) throw cannotCheck
    throw error instanceof WrongToken ? error : new WrongToken(faultOf(error))
  }
}

function faultOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'expired'
  if (error instanceof errors.JWTClaimValidationFailed) return `claim ${error.claim}`
  if (isUnknownKey(error)) return 'unknown key'
  if (error instanceof errors.JOSEAlgNotAllowed) return 'algorithm'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  return 'malformed'
}

function textOf(part: string): string {
  return Buffer.from(part, 'base64url').toString('utf8')
}
