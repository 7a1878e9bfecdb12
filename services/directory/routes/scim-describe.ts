import { refTo } from './api-schemas.js'
import { parameters } from './describe.js'
import type { Endpoint, Handler } from './http.js'

/** What the API document tells of a SCIM endpoint. */
export interface ScimAbout {
  /** Path parameters besides the directory's id. */
  readonly path?: readonly string[]
  readonly body?: 'ScimResource' | 'ScimPatch' | 'ScimSearch' | 'ScimBulk'
  readonly status?: 200 | 201 | 204
  readonly list?: boolean
  /** What the intake tells of itself: no parameter counts there, and a filter is refused. */
  readonly discovery?: boolean
}

const text = { type: 'string' }
/** In any letter case; no flag stands for that in a schema. */
export const sortOrderPattern = `^(${['ascending', 'descending'].map(anyCase).join('|')})?$`
const listQuery = {
  filter: { ...text, description: 'RFC 7644, section 3.4.2.2' },
  startIndex: { type: 'integer', default: 1, description: 'Less than 1 is taken as 1' },
  count: { type: 'integer', default: 100, description: 'Less than 0 is taken as 0, more than 200 as 200' },
  sortBy: text,
  sortOrder: { ...text, pattern: sortOrderPattern, description: '`ascending` (the default) or `descending`' },
}
const shownQuery = {
  attributes: { ...text, description: 'Names, separated by commas' },
  excludedAttributes: { ...text, description: 'Names, separated by commas' },
}

function anyCase(word: string): string {
  return word.replace(/[a-z]/g, letter => `[${letter.toUpperCase()}${letter}]`)
}

/** An endpoint of the SCIM intake. */
export function scimEndpoint(summary: string, handler: Handler, about: ScimAbout = {}): Endpoint {
  const { path = [], body, status = 200, list, discovery } = about
  const asksInBody = body === 'ScimSearch' || body === 'ScimBulk'
  const querystring = { type: 'object', properties: { ...(list ? listQuery : {}), ...shownQuery } }
  const answer = status === 204 ? { type: 'null' } : refTo(list ? 'ScimList' : 'ScimResource')
  const schema = {
    tags: ['SCIM'],
    summary,
    security: [{ scimSecret: [] }],
    consumes: ['application/scim+json', 'application/json'],
    produces: ['application/scim+json'],
    params: parameters(['directoryId', ...path]),
    ...(asksInBody || discovery || status === 204 ? {} : { querystring }),
    ...(body ? { body: refTo(body) } : {}),
    response: {
      [status]: { description: 'Success', ...answer },
      '4xx': refTo('ScimError'),
      '5xx': refTo('ScimError'),
    },
  }
  return { schema, handler }
}
