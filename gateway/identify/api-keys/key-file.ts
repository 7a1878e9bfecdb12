/** The file of API keys: made by `sluice keys`, read by gateways. It holds hashes, and no key. */
import { hash, randomBytes } from 'node:crypto'
import { isProjectId } from '../../../config/words/words.js'

/** One key. Times are ISO 8601 in UTC. */
export interface ApiKey {
  readonly id: string
  readonly project: string
  /** For people; unique within its project. */
  readonly name: string
  /** The beginning of the key, by which people recognize it. */
  readonly prefix: string
  /** SHA-256 of the whole key, in lower-case hexadecimal. */
  readonly hash: string
  readonly scopes: readonly string[]
  readonly created: string
  /** Absent: never. */
  readonly expires?: string
  readonly revoked?: string
}

export interface KeyFile {
  readonly version: 1
  readonly keys: readonly ApiKey[]
}

export const NO_KEYS: KeyFile = { version: 1, keys: [] }

/** Enough for 50,000 keys. */
export const MOST_FILE_BYTES = 32 * 1024 * 1024

const ID = /^[a-z0-9]{8}$/
const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/
/** RFC 6749 section 3.3. */
const SCOPE = /^[!#-[\]-~]{1,128}$/
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

export const isKeyName = (text: string): boolean => NAME.test(text)
export const isScope = (text: string): boolean => SCOPE.test(text)

/** @throws a sentence that says what is wrong */
export function parseKeyFile(text: string): KeyFile {
  let file: { version?: unknown; keys?: unknown } | null
  try {
    file = JSON.parse(text)
  } catch {
    throw new Error('It is not JSON.')
  }
  if (file?.version !== 1 || !Array.isArray(file.keys)) {
    throw new Error('It must be { "version": 1, "keys": [ … ] }, as "sluice keys" writes it.')
  }
  const seen = new Set<string>()
  for (const [i, key] of (file.keys as Partial<ApiKey>[]).entries()) {
    const wrong = wrongMember(key)
    if (wrong !== undefined) throw new Error(`keys[${i}] has no valid "${wrong}".`)
    for (const unique of [key.id as string, key.hash as string]) {
      if (seen.has(unique)) throw new Error(`keys[${i}] has the id or hash of another key.`)
      seen.add(unique)
    }
  }
  return { version: 1, keys: file.keys as ApiKey[] }
}

function wrongMember(key: Partial<ApiKey> | null): string | undefined {
  const {
    id = '',
    project = '',
    name = '',
    prefix = '',
    hash = '',
    scopes,
    created,
    expires,
    revoked,
  } = key ?? {}
  const isTime = (time: unknown) => typeof time === 'string' && !Number.isNaN(Date.parse(time))
  const isRight: Record<string, boolean> = {
    id: ID.test(id),
    project: isProjectId(project),
    name: NAME.test(name),
    prefix: /^[a-z0-9_]{1,32}$/.test(prefix),
    hash: /^[0-9a-f]{64}$/.test(hash),
    scopes: Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string' && SCOPE.test(scope)),
    created: isTime(created),
    expires: expires === undefined || isTime(expires),
    revoked: revoked === undefined || isTime(revoked),
  }
  return Object.keys(isRight).find(member => !isRight[member])
}

export const hashOf = (key: string): string => hash('sha256', key)

/** A new key and its entry. The key has 256 random bits, so a plain hash of it can be stored. */
export function newKey(
  entry: Pick<ApiKey, 'project' | 'name' | 'scopes' | 'expires'>,
  now: Date,
): { readonly key: string; readonly entry: ApiKey } {
  const id = Array.from(randomBytes(8), byte => LETTERS[byte % LETTERS.length]).join('')
  const prefix = `sluice_${id}`
  const key = `${prefix}_${randomBytes(32).toString('base64url').replaceAll(/[-_]/g, '0')}`
  return { key, entry: { id, ...entry, prefix, hash: hashOf(key), created: now.toISOString() } }
}

export type KeyState = 'active' | 'expired' | 'revoked'

/** @param now ms since the epoch */
export function stateOf({ revoked, expires }: Pick<ApiKey, 'revoked' | 'expires'>, now: number): KeyState {
  if (revoked !== undefined && Date.parse(revoked) <= now) return 'revoked'
  return expires !== undefined && Date.parse(expires) <= now ? 'expired' : 'active'
}
