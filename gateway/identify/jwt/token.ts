/** Checks one token (RFC 7519, RFC 8725). The home file of jose. */
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
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
export class WrongToken extends Error {
  /** True if the token may be right all the same: its key may be newer than the key set. */
  readonly mayBeRight: boolean

  constructor(reason: string, { mayBeRight = false } = {}) {
    super(reason)
    this.mayBeRight = mayBeRight
  }
}

/** In characters. Headers have a few names, and are read before anything is verified. */
const [LONGEST, LONGEST_HEADER] = [16 * 1024, 2 * 1024]
/** Of the keys that fit a token without a key id, or with one that several have. */
const MOST_KEYS_TRIED = 4
/**
 * One part in base64url as RFC 7515 section 2 has it: no padding or blanks, and no bits set beyond the last byte. Decoders
 * let these pass, so one token would have any number of spellings.
 */
const PART = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/
const TYPES = ['jwt', 'at+jwt']

export const keyFinder = (keys: Keys): KeyOf => createLocalJWKSet(keys)

/** Types and curves of keys (RFC 7518 section 3.1, RFC 8037 section 3.1) by the beginning of an algorithm. */
const KEY_FOR: Readonly<Record<string, string>> = {
  ...{ RS: 'RSA', PS: 'RSA', Ed: 'OKP Ed25519' },
  ...{ ES256: 'EC P-256', ES384: 'EC P-384', ES512: 'EC P-521' },
}

/** True if tokens that are signed by one of these algorithms can have been by one of the keys. */
export function fitsAny({ keys }: Keys, algorithms: readonly string[]): boolean {
  return keys.some(({ kty, crv, alg, use = 'sig', key_ops = ['verify'] }) =>
    algorithms.some(algorithm => {
      const type = KEY_FOR[algorithm] ?? KEY_FOR[algorithm.slice(0, 2)]
      const isOfType = type === (kty === 'RSA' ? kty : `${kty} ${crv}`)
      const verifies = use === 'sig' && Array.isArray(key_ops) && key_ops.includes('verify')
      return isOfType && verifies && (alg === undefined || alg === algorithm)
    }),
  )
}

/** True if a key set has no key such as the token names. */
export function isUnknownKey(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey
}

/** The claims of a valid token. Rejects with WrongToken, or with another error if the token cannot be checked. */
export async function verify(token: string, keyOf: KeyOf, settings: TokenSettings): Promise<Claims> {
  if (token.length > LONGEST) throw new WrongToken('too long')
  const parts = token.split('.')
  const [header = '', payload = ''] = parts
  if (parts.length !== 3 || header === '' || !parts.every(part => PART.test(part)))
    throw new WrongToken('malformed')
  if (header.length > LONGEST_HEADER) throw new WrongToken('header too long')
  let cannotCheck: unknown
  const keyOrFault: KeyOf = async (...asked) => {
    try {
      return await keyOf(...asked)
    } catch (error) {
      if (!(error instanceof errors.JOSEError) && !(error instanceof WrongToken)) cannotCheck = error
      throw error
    }
  }
  try {
    if (!isForAccess(decodeProtectedHeader(token).typ)) throw new WrongToken('another type')
    // Before its key is looked for: those of other issuers are not to be asked for here.
    if (!mayBeFrom(settings.issuer, textOf(payload))) throw new WrongToken('claim iss')
    const claims = await verified(token, keyOrFault, settings)
    // Only now: of a text of many names it takes longer than the signature.
    if ([header, payload].some(part => hasDuplicateName(textOf(part))))
      throw new WrongToken('duplicate claim')
    if (!isMeantFor(claims, settings)) throw new WrongToken(`claim ${settings.audienceClaim}`)
    // JSON may hold numbers beyond what JavaScript has.
    if (!Number.isFinite(claims.exp)) throw new WrongToken('claim exp')
    return claims
  } catch (error) {
    if (cannotCheck !== undefined) throw cannotCheck
    throw error instanceof WrongToken ? error : new WrongToken(faultOf(error))
  }
}

/** RFC 8725 section 3.11: a token that was made for another purpose, such as a logout, is none for access. */
function isForAccess(typ: string | undefined): boolean {
  const type = String(typ).toLowerCase()
  return typ === undefined || TYPES.includes(type.replace(/^application\//, ''))
}

/**
 * False if no `iss` in this JSON text is the issuer. Nothing is verified yet, so the text is only searched: it may have
 * been made to be expensive to read.
 */
function mayBeFrom(issuer: string, text: string): boolean {
  for (const { index, 0: name } of text.matchAll(/"iss"\s*:\s*/g)) {
    const written = quotedAt(text, index + name.length)
    if (written === `"${issuer}"` || (written.includes('\\') && unescaped(written) === issuer)) return true
  }
  return false
}

function quotedAt(text: string, start: number): string {
  const quoted = /"(?:[^"\\]|\\.)*"/y
  quoted.lastIndex = start
  return quoted.exec(text)?.[0] ?? ''
}

function unescaped(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}

/** Errors of a token whose signature is right. */
const CLAIM_ERRORS = [errors.JWTClaimValidationFailed, errors.JWTExpired, errors.JWTInvalid]

/** The claims, if one of the keys that fit has signed them and they hold now. */
async function verified(token: string, keyOf: KeyOf, settings: TokenSettings): Promise<Claims> {
  const { issuer, algorithms, clockTolerance } = settings
  const options: JWTVerifyOptions = {
    ...{ issuer, algorithms: [...algorithms] },
    ...{ clockTolerance: clockTolerance / 1000, requiredClaims: ['exp'] },
  }
  try {
    return (await jwtVerify(token, keyOf, options)).payload
  } catch (several) {
    if (!(several instanceof errors.JWKSMultipleMatchingKeys)) throw several
    let tried = 0
    for await (const key of several) {
      try {
        return (await jwtVerify(token, key, options)).payload
      } catch (error) {
        tried += 1
        if (CLAIM_ERRORS.some(one => error instanceof one)) throw error
        if (tried === MOST_KEYS_TRIED) break
      }
    }
    throw new WrongToken('signature')
  }
}

function isMeantFor(claims: Claims, { audience, audienceClaim }: TokenSettings): boolean {
  const accepted = [audience].flat() as readonly string[]
  const meant = Object.hasOwn(claims, audienceClaim) ? [claims[audienceClaim]].flat() : []
  return meant.some(one => accepted.includes(one as string))
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
