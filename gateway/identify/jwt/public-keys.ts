/** Which keys of a set can check signatures. The others are skipped, as RFC 7517 section 5 wants it. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'

/** RFC 7518 section 3.3. */
const LEAST_RSA_BITS = 2048

/** A key that cannot be used. */
export interface SkippedKey {
  readonly index: number
  /** The end of a sentence. */
  readonly fault: string
  readonly isPrivate: boolean
}

/** The public keys among these members of a set, and what is wrong with the others. */
export function publicKeys<Key>(members: readonly unknown[]): {
  readonly keys: Key[]
  readonly skipped: SkippedKey[]
} {
  const keys: Key[] = []
  const skipped: SkippedKey[] = []
  for (const [index, member] of members.entries()) {
    const fault = faultOf(member)
    if (fault === undefined) keys.push(member as Key)
    else skipped.push({ index, fault, isPrivate: fault === PRIVATE })
  }
  return { keys, skipped }
}

const PRIVATE = 'is a private key'

function faultOf(member: unknown): string | undefined {
  if (typeof member !== 'object' || member === null) return 'is no key'
  const key = member as JsonWebKey
  if (key.kty === 'oct') return 'is a shared secret'
  if (key.d !== undefined) return PRIVATE
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key, format: 'jwk' })
    const bits = asymmetricKeyDetails?.modulusLength ?? LEAST_RSA_BITS
    return bits < LEAST_RSA_BITS ? `has only ${bits} bits` : undefined
  } catch {
    return 'is of no kind that is known, or incomplete'
  }
}
