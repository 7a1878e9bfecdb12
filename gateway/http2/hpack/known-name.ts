/** What encoders know of a field's name. The table of common names never grows, so no peer can fill it. */
import { COMMON_NAMES, lowerName } from '../../http1/names.js'
import { isFieldName } from './header-field.js'
import { STATIC_TABLE } from './static-table.js'

export interface KnownName {
  readonly lower: string
  /** In the static table, with whatever value; 0 if it is not there. */
  readonly index: number
  /** In the static table, by value. */
  readonly indexes: ReadonlyMap<string, number> | undefined
  /** Its values are in no table, here or on the way (RFC 7541 section 7.1.3). */
  readonly isSecret: boolean
}

const SECRET = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key', 'x-sluice-secret'],
  ...['authentication-info', 'proxy-authentication-info'],
])
/** A longer one is no name of any use. */
const LONGEST_NAME = 64

const COMMON: ReadonlyMap<string, KnownName> = new Map(
  [...STATIC_TABLE.flatMap(field => field?.name ?? []), ...COMMON_NAMES].map(name => [name, describe(name)]),
)

export function knownName(spelling: string): KnownName {
  const lower = lowerName(spelling)
  return COMMON.get(lower) ?? { lower, index: 0, indexes: undefined, isSecret: SECRET.has(lower) }
}

/** The same, to be kept. */
export function keptName(name: KnownName): KnownName {
  return COMMON.get(name.lower) ?? { ...name, lower: copyOf(name.lower) }
}

/** Of Latin-1 text. A slice would keep the head that it is from. */
export const copyOf = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')

/** False for what is too long to repeat, and for what is no name: cut to bytes, it might look like another one. */
export function isRepeatable({ lower }: KnownName): boolean {
  return lower.length <= LONGEST_NAME && (isFieldName(lower) || COMMON.has(lower))
}

function describe(lower: string): KnownName {
  const indexes = new Map<string, number>()
  for (const [index, field] of STATIC_TABLE.entries())
    if (field?.name === lower) indexes.set(field.value, index)
  const [index = 0] = indexes.values()
  indexes.delete('')
  return { lower, index, indexes: indexes.size > 0 ? indexes : undefined, isSecret: SECRET.has(lower) }
}
