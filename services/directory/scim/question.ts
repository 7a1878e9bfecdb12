import type { ResourceType } from '../model.js'
import { ScimError } from './error.js'
import { type Filter, parseAttributePath, parseFilter } from './filter.js'
import type { Order } from './sort.js'

/** The parameters of a list (RFC 7644, section 3.4.2), from the query of a GET or the body of a search. */
export interface ListParameters {
  readonly filter?: string | undefined
  readonly sortBy?: string | undefined
  readonly sortOrder?: string | undefined
  readonly startIndex?: number | undefined
  readonly count?: number | undefined
  readonly attributes?: readonly string[] | undefined
  readonly excludedAttributes?: readonly string[] | undefined
}

/** A parsed list query with the window of the results that is wanted: `start` counts from 1. */
export interface SearchQuery {
  readonly filter: Filter | undefined
  readonly order: Order | undefined
  readonly start: number
  readonly count: number
}

const defaultCount = 100
/** Most resources in one response; a larger `count` gets this many. */
export const maxCount = 200

/** Parses a list query for resources of a type. Throws 400. */
export function readQuestion(asked: ListParameters, type: ResourceType): SearchQuery {
  const { filter: text = '', startIndex = 1, count = defaultCount } = asked
  const filter = text.trim() === '' ? undefined : parseFilter(text)
  if (filter && type === 'user' && asksForGroups(filter)) {
    const detail = 'Users cannot be searched by group: read the group, or search /Groups by members.'
    throw new ScimError(400, detail, 'invalidFilter')
  }
  return {
    filter,
    order: readOrder(asked),
    start: Math.max(1, startIndex),
    count: Math.min(maxCount, Math.max(0, count)),
  }
}

function readOrder({ sortBy = '', sortOrder = '' }: ListParameters): Order | undefined {
  if (!/^(ascending|descending)?$/i.test(sortOrder)) {
    throw new ScimError(400, 'sortOrder must be ascending or descending.', 'invalidValue')
  }
  if (sortBy.trim() === '') return undefined
  return { path: parseAttributePath(sortBy.trim()), descending: sortOrder.toLowerCase() === 'descending' }
}

function asksForGroups(filter: Filter): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.some(asksForGroups)
    case 'not':
      return asksForGroups(filter.filter)
    default:
      return filter.path[0]?.toLowerCase() === 'groups'
  }
}
