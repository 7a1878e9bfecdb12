import { createHash } from 'node:crypto'
import { isJsonObject } from '../../json.js'
import type { JsonValue, Resource } from '../model.js'
import type { AttributePath, Filter } from './filter.js'
import { folded } from './match.js'

/** The attributes besides the id by which identity providers look up resources. externalId is case-sensitive. */
const lookups = ['externalid', 'username', 'displayname', 'emails'] as const
type Lookup = (typeof lookups)[number]

/**
 * A lookup term: short and of one alphabet whatever the value contains, and without e-mail addresses in clear in an
 * index. The hash comes first, so that a user name that is also an e-mail address is written in one place of the
 * index.
 */
export function termOf(lookup: Lookup, value: string): string {
  const hash = createHash('sha256').update(folded(lookup, value))
  return `${hash.digest('base64url').slice(0, 24)}:${lookup}`
}

/** The terms under which a resource is found. */
export function termsOf({ raw }: Pick<Resource, 'raw'>): string[] {
  const terms = new Set<string>()
  const add = (lookup: Lookup, value: JsonValue | undefined): void => {
    if (typeof value === 'string') terms.add(termOf(lookup, value))
  }
  add('externalid', raw.externalId)
  add('username', raw.userName)
  add('displayname', raw.displayName)
  for (const email of Array.isArray(raw.emails) ? raw.emails : []) {
    if (isJsonObject(email)) add('emails', email.value)
  }
  return [...terms]
}

/**
 * Terms of which a matching resource must have at least one, or undefined when the filter gives none and the directory
 * has to be scanned. The filter itself is checked afterwards, so terms may match too much but never too little.
 */
export const termsOfFilter = (filter: Filter): string[] | undefined =>
  alternatives(filter, ([name, ...rest], value) => {
    const lookup = lookups.find(candidate => candidate === name)
    const direct = rest.length === 0 || (lookup === 'emails' && rest.join() === 'value')
    return lookup && direct ? termOf(lookup, value) : undefined
  })

/** Ids of which a matching resource must have one, or undefined when the filter does not name any. */
export const idsOfFilter = (filter: Filter): string[] | undefined =>
  alternatives(filter, (path, value) => (path.join() === 'id' ? value : undefined))

/**
 * Users of whom a matching group must have at least one as a member, or undefined when the filter does not name any.
 */
export const membersOfFilter = (filter: Filter): string[] | undefined =>
  alternatives(filter, (path, value) => (isMember(path) ? value : undefined))

/** The ids that a filter compares members with, or undefined when it has any other condition on members. */
export function membersAskedFor(filter: Filter, within: AttributePath = []): string[] | undefined {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const parts = filter.filters.map(part => membersAskedFor(part, within))
      return parts.every(ids => ids !== undefined) ? parts.flat() : undefined
    }
    case 'not':
      return membersAskedFor(filter.filter, within)
    case 'some':
      return membersAskedFor(filter.filter, [...within, ...filter.path])
    default: {
      const path = lowered([...within, ...filter.path])
      if (path[0] !== 'members') return []
      const isId = filter.kind === 'compare' && filter.operator === 'eq' && isMember(path)
      return isId && typeof filter.literal === 'string' ? [filter.literal] : undefined
    }
  }
}

const lowered = (path: AttributePath): string[] => path.map(name => name.toLowerCase())
const isMember = (path: AttributePath): boolean => /^members(,value)?$/.test(path.join())

/**
 * Values of which one must be present: what `hint` returns for `eq` conditions, the shortest list of several joined by
 * `and`.
 */
function alternatives(
  filter: Filter,
  hint: (path: AttributePath, literal: string) => string | undefined,
  within: AttributePath = [],
): string[] | undefined {
  switch (filter.kind) {
    case 'compare': {
      if (filter.operator !== 'eq' || typeof filter.literal !== 'string') return undefined
      const value = hint(lowered([...within, ...filter.path]), filter.literal)
      return value === undefined ? undefined : [value]
    }
    case 'some':
      return alternatives(filter.filter, hint, [...within, ...filter.path])
    case 'and':
      return filter.filters
        .map(part => alternatives(part, hint, within))
        .filter(values => values !== undefined)
        .sort((a, b) => a.length - b.length)[0]
    case 'or': {
      const parts = filter.filters.map(part => alternatives(part, hint, within))
      return parts.every(values => values !== undefined) ? parts.flat() : undefined
    }
    default:
      return undefined
  }
}
