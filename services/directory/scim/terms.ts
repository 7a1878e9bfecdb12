import { createHash } from 'node:crypto'
import type { Json, Resource } from '../model.js'
import type { Filter } from './filter.js'
import { isObject } from './json.js'

/** The attributes identity providers look resources up by. externalId and id are compared with their letter case. */
const lookups = ['id', 'externalid', 'username', 'displayname', 'emails'] as const
type Lookup = (typeof lookups)[number]

/** A lookup term: short and of one alphabet whatever the value holds, and no e-mail in clear in an index. */
export function termOf(lookup: Lookup, value: string): string {
  const exact = lookup === 'id' || lookup === 'externalid'
  const hash = createHash('sha256').update(exact ? value : value.toLowerCase())
  return `${lookup}:${hash.digest('base64url').slice(0, 24)}`
}

/** The terms a resource is found by. */
export function termsOf({ id, raw }: Pick<Resource, 'id' | 'raw'>): string[] {
  const terms = new Set([termOf('id', id)])
  const add = (lookup: Lookup, value: Json | undefined): void => {
    if (typeof value === 'string') terms.add(termOf(lookup, value))
  }
  add('externalid', raw.externalId)
  add('username', raw.userName)
  add('displayname', raw.displayName)
  for (const email of Array.isArray(raw.emails) ? raw.emails : []) {
    if (isObject(email)) add('emails', email.value)
  }
  return [...terms]
}

/**
 * Terms of which a fitting resource must hold at least one, or undefined when the filter gives none and the directory has
 * to be walked. The filter itself is checked afterwards, so a term may promise too much but never too little.
 */
export function narrow(filter: Filter, within: readonly string[] = []): string[] | undefined {
  switch (filter.kind) {
    case 'compare': {
      const [name, ...rest] = [...within, ...filter.path].map(part => part.toLowerCase())
      const lookup = lookups.find(candidate => candidate === name)
      const direct = rest.length === 0 || (lookup === 'emails' && rest.join() === 'value')
      if (!lookup || !direct || filter.operator !== 'eq' || typeof filter.literal !== 'string')
        return undefined
      return [termOf(lookup, filter.literal)]
    }
    case 'some':
      return narrow(filter.filter, [...within, ...filter.path])
    case 'and':
      return filter.filters
        .map(part => narrow(part, within))
        .filter(terms => terms !== undefined)
        .sort((a, b) => a.length - b.length)[0]
    case 'or': {
      const parts = filter.filters.map(part => narrow(part, within))
      return parts.every(terms => terms !== undefined) ? parts.flat() : undefined
    }
    default:
      return undefined
  }
}
