/** Verifies tokens (RFC 7519, RFC 8725). The home file of jose. */
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import type { Project } from '../../plugin.js'
import { hasDuplicateName } from './claims.js'
import type { KeyOf } from './key-set.js'
import type { VerifiedTokens } from './verified-tokens.js'

export interface TokenSettings {
  readonly issuer: string
  readonly audience: string | readonly string[]
  readonly algorithms: readonly string[]
  /** In milliseconds. */
  readonly clockTolerance: number
}

/** In characters. */
const LONGEST_TOKEN = 16 * 1024
/** RFC 8725 section 3.11: a token that was made for another purpose, such as a logout, is none for access. */
const TYPES = ['jwt', 'at+jwt']

/** Why a token is not accepted, in a word or two. */
export class WrongToken extends Error {}

export class Verifier {
  readonly #settings: TokenSettings
  readonly #keyOf: KeyOf
  readonly #projectOf: (claims: JWTPayload) => Project | string
  readonly #verified: VerifiedTokens
  /** Tokens that are being verified: many requests may bring the same new one at once. */
  readonly #running = new Map<string, Promise<Project>>()
  #generation = 0

  constructor(
    settings: TokenSettings,
    keyOf: KeyOf,
    projectOf: (claims: JWTPayload) => Project | string,
    verified: VerifiedTokens,
  ) {
    this.#settings = settings
    this.#keyOf = keyOf
    this.#projectOf = projectOf
    this.#verified = verified
  }

  /** The project of a token; a promise only for one that was not seen before, which rejects with WrongToken for a wrong one. */
  projectOf(token: string): Project | Promise<Project> {
    const known = this.#verified.get(token, Date.now() / 1000)
    if (known !== undefined) return known
    let running = this.#running.get(token)
    if (running === undefined) {
      running = this.#verify(token).finally(() => this.#running.delete(token))
      this.#running.set(token, running)
    }
    return running
  }

  /** A key is no longer trusted: what was verified with it is not remembered. */
  forget(): void {
    this.#generation += 1
    this.#verified.clear()
  }

  async #verify(token: string): Promise<Project> {
    if (token.length > LONGEST_TOKEN) throw new WrongToken('too long')
    const parts = token.split('.')
    if (parts.length !== 3) throw new WrongToken('malformed')
    if (parts.slice(0, 2).some(part => hasDuplicateName(textOf(part))))
      throw new WrongToken('duplicate claim')
    const generation = this.#generation
    const claims = await this.#claimsOf(token)
    const project = this.#projectOf(claims)
    if (typeof project === 'string') throw new WrongToken(project)
    const until = (claims.exp as number) + this.#settings.clockTolerance / 1000
    if (generation === this.#generation) this.#verified.set(token, project, until)
    return project
  }

  async #claimsOf(token: string): Promise<JWTPayload> {
    const { issuer, audience, algorithms, clockTolerance } = this.#settings
    try {
      const { typ } = decodeProtectedHeader(token)
      if (typ !== undefined && !TYPES.includes(typ.toLowerCase().replace(/^application\//, ''))) {
        throw new WrongToken('another type')
      }
      const { payload } = await jwtVerify(token, this.#keyOf, {
        ...{ issuer, audience: [audience].flat(), algorithms: [...algorithms] },
        ...{ clockTolerance: clockTolerance / 1000, requiredClaims: ['exp'] },
      })
      return payload
    } catch (error) {
      throw faultOf(error) ?? error
    }
  }
}

/** Undefined if the token could not be checked. */
function faultOf(error: unknown): WrongToken | undefined {
  if (error instanceof errors.JWTExpired) return new WrongToken('expired')
  if (error instanceof errors.JWTClaimValidationFailed) return new WrongToken(`claim ${error.claim}`)
  if (error instanceof errors.JWKSNoMatchingKey) return new WrongToken('unknown key')
  if (error instanceof errors.JOSEAlgNotAllowed) return new WrongToken('algorithm')
  if (error instanceof errors.JWSSignatureVerificationFailed) return new WrongToken('signature')
  if (error instanceof errors.JOSEError || error instanceof TypeError) return new WrongToken('malformed')
  return undefined
}

function textOf(part: string): string {
  return Buffer.from(part, 'base64url').toString('utf8')
}
