/** What encoders know of a field's name, by its spelling: shared by all connections, and bounded. */
import { lowerName } from '../../http1/names.js'
import { STATIC_TABLE } from './static-table.js'

export interface KnownName {
  readonly lower: string
  /** In the static table, with whatever value; 0 if it is not there. */
  readonly index: number
  /** In the static table, by value. */
  readonly indexes: ReadonlyMap<string, number> | undefined
  /** Small and stable; undefined for a name that is not kept. */
  readonly id: number | undefined
  /** Its values are in no table, here or on the way (RFC 7541 section 7.1.3). */
  readonly isSecret: boolean
}

const SECRET = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key'],
  ...['authentication-info', 'proxy-authentication-info'],
])
/** Spellings that are kept. Names come from upstreams, and towards upstreams from clients. */
const MOST_NAMES = 512
/** A longer one is no name of any use. */
const LONGEST_NAME = 64

const known = new Map<string, KnownName>()
const byLower = new Map<string, KnownName>()

export function knownName(spelling: string): KnownName {
  const found = known.get(spelling)
  if (found !== undefined) return found
  const isKept = known.size < MOST_NAMES && spelling.length <= LONGEST_NAME
  const lower = lowerName(spelling)
  const name = byLower.get(lower) ?? describe(lower, isKept)
  if (!isKept) return name
  byLower.set(name.lower, name)
  known.set(copyOf(spelling), name)
  return name
}

function describe(lower: string, isKept: boolean): KnownName {
  const indexes = new Map<string, number>()
  for (const [index, field] of STATIC_TABLE.entries())
    if (field?.name === lower) indexes.set(field.value, index)
  const [index = 0] = indexes.values()
  indexes.delete('')
  return {
    lower: copyOf(lower),
    index,
    indexes: indexes.size > 0 ? indexes : undefined,
    id: isKept ? byLower.size : undefined,
    isSecret: SECRET.has(lower),
  }
}

/** A slice would keep the head that it is from. */
const copyOf = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')
