/** Keys of both services, as settings list them and as requests present them. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isKey } from './storage/data-folder.js'

/** What protects a key from being guessed is its length. */
const MIN_LENGTH = 16

/** The keys that a setting lists, separated by commas or line breaks; empty: none. Throws an Error with a sentence. */
export function readKeys(name: string, text = ''): string[] {
  if (text.trim() === '') return []
  const keys = text
    .trim()
    .split(/[,\n]/)
    .map(key => key.trim())
  if (keys.every(key => key.length >= MIN_LENGTH && !/\s/.test(key))) return keys
  throw new Error(
    `${name} must be keys of at least ${MIN_LENGTH} characters without spaces, separated by commas; openssl rand -hex 24 makes one`,
  )
}

/** The keys that ENCRYPTION_KEY lists, in base64; empty: none. Throws an Error with a sentence. */
export function readEncryptionKeys(text = ''): string[] {
  const keys = text.split(/[\s,]+/).filter(Boolean)
  if (keys.every(isKey)) return keys
  throw new Error(
    'ENCRYPTION_KEY must be 32 bytes in base64, as printed by: openssl rand -base64 32. Several are separated by commas',
  )
}

/** SHA-256 of a key. Keys are random, so a slow password hash would add nothing. */
export const hashKey = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Compares with every hash in constant time, so that the time taken does not reveal which one was close. */
export const isOneOf = (presented: string, hashes: readonly Buffer[]): boolean =>
  hashes.map(hash => timingSafeEqual(hashKey(presented), hash)).includes(true)

/** Whether an Authorization field presents one of the keys: `Api-Key <key>` or `Bearer <key>`. */
export function presentsKey(authorization: string | undefined, hashes: readonly Buffer[]): boolean {
  const [, key] = /^(?:Api-Key|Bearer) +(\S+)$/i.exec(authorization ?? '') ?? []
  return key !== undefined && isOneOf(key, hashes)
}
