/** The file of API keys: made by `sluice keys`, read by gateways. It holds hashes, and no key. */
import { hash, randomBytes } from 'node:crypto'
import { isProjectId } from '../../../config/words/words.js'
import { atOnce } from './steps.js'

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

/** Enough for 50,000 keys. */
export const MOST_FILE_BYTES = 32 * 1024 * 1024

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/
/** RFC 6749 section 3.3. */
const SCOPE = /^[!#-[\]-~]{1,128}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

export const isKeyName = (text: string): boolean => NAME.test(text)
export const isScope = (text: string): boolean => SCOPE.test(text)

const matches = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value)
const isTime = (value: unknown) => matches(TIME)(value) && !Number.isNaN(Date.parse(value as string))
const prefixOf = (id: unknown): string => `sluice_${id}`
/** In characters: a prefix, "_", and 32 bytes in base64url. */
const WHOLE_KEY = 'sluice_12345678_'.length + 43

interface Member {
  is(value: unknown, key: { readonly id?: unknown }): boolean
  /** The end of a sentence. Values are not quoted: one may be a key, written in a wrong place. */
  readonly must: string
  readonly optional?: true
}
const MOMENT = { is: isTime, must: 'be a time in UTC such as 2026-12-31T18:00:00.000Z' } as const
const MEMBERS: Readonly<Record<keyof ApiKey, Member>> = {
  id: { is: matches(/^[a-z0-9]{8}$/), must: 'be 8 lower-case letters or digits' },
  project: {
    is: value => typeof value === 'string' && isProjectId(value),
    must: 'be an id that a project can have',
  },
  name: { is: matches(NAME), must: 'be a name, of up to 64 letters, digits, spaces, ".", "_" and "-"' },
  prefix: { is: (value, { id }) => value === prefixOf(id), must: 'be "sluice_" and the id' },
  hash: { is: matches(/^[0-9a-f]{64}$/), must: 'be a SHA-256, of 64 lower-case hexadecimal digits' },
  scopes: { is: value => Array.isArray(value) && value.every(matches(SCOPE)), must: 'be a list of scopes' },
  created: MOMENT,
  expires: { ...MOMENT, optional: true },
  revoked: { ...MOMENT, optional: true },
}
const CHECKED = Object.entries(MEMBERS)

/** The keys of a file, and how they are found. */
export interface KeyTable {
  readonly keys: readonly ApiKey[]
  readonly byHash: ReadonlyMap<string, ApiKey>
  readonly byId: ReadonlyMap<string, ApiKey>
}

export const NO_KEYS: KeyTable = { keys: [], byHash: new Map(), byId: new Map() }

/** After so many keys others may run: the gateway reads a large file while requests come. */
const STEP = 1000

/** Reads the text of a file in steps. @throws a sentence that says what is wrong */
export function* readingKeys(text: string): Generator<void, KeyTable> {
  const file = parse(text)
  yield
  const byHash = new Map<string, ApiKey>()
  const byId = new Map<string, ApiKey>()
  for (const [i, key] of file.keys.entries()) {
    const fault = faultOf(key)
    if (fault !== undefined) throw new Error(`keys[${i}]${fault}`)
    const { id, hash } = key
    for (const [member, other] of [
      ['id', byId.get(id)],
      ['hash', byHash.get(hash)],
    ] as const) {
      if (other === undefined) continue
      throw new Error(
        `keys[${i}].${member} is that of keys[${file.keys.indexOf(other)}]: remove one of them.`,
      )
    }
    byId.set(id, key)
    byHash.set(hash, key)
    if (i % STEP === STEP - 1) yield
  }
  return { keys: file.keys, byHash, byId }
}

/** The same at once. @throws a sentence that says what is wrong */
export const parseKeyFile = (text: string): KeyTable => atOnce(readingKeys(text))

function parse(text: string): { readonly keys: readonly ApiKey[] } {
  let file: Readonly<Record<string, unknown>> | null
  try {
    file = JSON.parse(text)
  } catch {
    throw new Error('It is not JSON.')
  }
  const { version, keys, ...others } = file ?? {}
  if (version !== 1 || !Array.isArray(keys) || Object.keys(others).length > 0) {
    throw new Error('It must be { "version": 1, "keys": [ … ] }, as "sluice keys" writes it.')
  }
  return { keys }
}

/** What is wrong with a key, as the end of a sentence. */
function faultOf(written: unknown): string | undefined {
  if (typeof written !== 'object' || written === null) return ' must be a key, as "sluice keys" writes it.'
  const key = written as Readonly<Record<string, unknown>>
  for (const [name, { is, must, optional }] of CHECKED) {
    const value = key[name]
    if (!(optional && value === undefined) && !is(value, key)) return `.${name} must ${must}.`
  }
  for (const name of Object.keys(key)) {
    if (Object.hasOwn(MEMBERS, name)) continue
    const shown = /^[\w-]{1,64}$/.test(name) ? `.${name}` : ' has a member that'
    return `${shown} is not known: a key has ${Object.keys(MEMBERS).join(', ')}.`
  }
  return undefined
}

export const hashOf = (key: string): string => hash('sha256', key)

/** A new key and its entry. The key has 256 random bits, so a plain hash of it can be stored. */
export function newKey(
  entry: Pick<ApiKey, 'project' | 'name' | 'scopes' | 'expires'>,
  now: Date,
): { readonly key: string; readonly entry: ApiKey } {
  const id = Array.from(randomBytes(8), byte => LETTERS[byte % LETTERS.length]).join('')
  const prefix = prefixOf(id)
  const key = `${prefix}_${randomBytes(32).toString('base64url').replaceAll(/[-_]/g, '0')}`
  return { key, entry: { id, ...entry, prefix, hash: hashOf(key), created: now.toISOString() } }
}

/** Whether a text that somebody gives is this key, or its beginning; `another` if a whole key begins like it. */
export function isKey(text: string, { prefix, hash }: Pick<ApiKey, 'prefix' | 'hash'>): boolean | 'another' {
  if (text !== prefix && !text.startsWith(`${prefix}_`)) return false
  return text.length < WHOLE_KEY || hashOf(text) === hash || 'another'
}

/** The text with no more of a key in it than its prefix. */
export function withoutSecret(text: string): string {
  return text.replace(/(sluice_.{8}).+/is, '$1…')
}

export type KeyState = 'active' | 'expired' | 'revoked'

/**
 * A revoked key is revoked now, even if the clock of who revoked it is ahead.
 * @param now ms since the epoch
 */
export function stateOf({ revoked, expires }: Pick<ApiKey, 'revoked' | 'expires'>, now: number): KeyState {
  if (revoked !== undefined) return 'revoked'
  return expires !== undefined && Date.parse(expires) <= now ? 'expired' : 'active'
}
