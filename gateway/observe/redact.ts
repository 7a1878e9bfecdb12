/** Personal data made fit for a log: keyed hashes that can be compared but not read back (design section 12). */
import { createHmac } from 'node:crypto'

const HASH_LENGTH = 16
/** Words as APIs use them: `admin`, `self-service`, `oauth2`, `v2`. */
const WORD = /^[A-Za-z]+(?:[_-][A-Za-z]+)*[0-9]{0,2}$/
const LONGEST_WORD = 32

/** 16 characters (96 bits) of an HMAC-SHA256 under `salt`. */
export function keyedHash(text: string, salt: Buffer): string {
  return createHmac('sha256', salt).update(text).digest('base64url').slice(0, HASH_LENGTH)
}

/**
 * The path in its own shape, with each segment that may name a person or hold a secret replaced by `~` and its hash:
 * those at a parameter of the route, and those that are no plain word. What the route itself spells out stays.
 */
export function redactPath(path: string, route: string, salt: Buffer): string {
  const pattern = route.slice(route.indexOf('/') + 1).split('/')
  return path
    .split('/')
    .map((segment, i) => {
      const written = i === 0 ? '' : pattern[i - 1]
      const isSafe = segment === '' || segment === written || (isWord(segment) && !isParameter(written))
      return isSafe ? segment : `~${keyedHash(segment, salt)}`
    })
    .join('/')
}

const isWord = (segment: string): boolean => segment.length <= LONGEST_WORD && WORD.test(segment)
const isParameter = (written: string | undefined): boolean => written?.startsWith('{') ?? false

/** The network an address is in: IPv4 by /24. `network` is the address, or the /64 of an IPv6 one (`Facts.network`). */
export function networkPrefix(network: string): string {
  if (network.includes(':')) return network
  return network.replace(/\.[0-9]+$/, '.0/24')
}
