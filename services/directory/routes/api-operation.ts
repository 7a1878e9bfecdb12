import type { Schema } from '../../http/server.js'
import { refTo } from '../schemas/parts.js'
import { problemSchema } from '../schemas/refusals.js'

const areas = [
  { prefix: /^\/api\/v1\/directory-sync/, name: '' },
  { prefix: /^\/api\/scim\/v2\.0\/:directoryId/, name: 'Scim' },
  { prefix: /^\/api\/scim\/oauth/, name: 'Consent' },
]

/** A name for generated clients, made of method and path: `getGroupsByIdMembers`, `patchScimUsersById`. */
export function operationId(method: string, url: string): string {
  const area = areas.find(({ prefix }) => prefix.test(url))
  const path = area ? url.replace(area.prefix, '') : url
  const words = path
    .split('/')
    .map(part => part.replace(/^:directoryId$/, 'directory').replace(/^:/, 'by-'))
    .flatMap(part => part.split(/[^A-Za-z]+/))
    .filter(word => word !== '')
  const named = words.length === 0 && area?.name === '' ? ['directories'] : words
  return [method.toLowerCase(), area?.name ?? '', ...named.map(capital)].join('')
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

type Answers = Readonly<Record<string, unknown>>

/** The responses of a route; errors also in the form of the gateway's own errors. */
export function withGatewayAnswers(schema: Schema): Answers {
  const own = schema.response as Answers
  const [mediaType = 'application/json'] = (schema as { produces?: string[] }).produces ?? []
  const problem = { 'application/problem+json': { schema: refTo(problemSchema) } }
  const failed = (status: '4xx' | '5xx', description: string) => ({
    [status]: { description, content: { [mediaType]: { schema: own[status] }, ...problem } },
  })
  return {
    ...own,
    ...failed('4xx', 'What was wrong with the request; as problem+json when the gateway refused it'),
    ...failed('5xx', 'The request was not at fault; as problem+json when the gateway answers'),
    429: {
      description: 'A limit of the gateway in front, or too many wrong keys; try again after Retry-After',
      headers: { 'Retry-After': { type: 'integer', description: 'Seconds' } },
      content: { ...problem, [mediaType]: { schema: own['4xx'] } },
    },
  }
}
