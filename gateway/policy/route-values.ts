/** Texts of a route that say something about each request. Pure. */
import { partsOf, type RequestValue } from '../../config/words/request-values.js'
import type { Facts, Project } from '../types.js'

/** The text for one request. `project` is undefined if nobody is counted for it. */
export type TextFor = (facts: Facts, project: Project | undefined) => string

/** What a field may hold. Plugins give the ids of projects: none of them may end a line, or a head. */
const FIELD_VALUE = /^[\x20-\x7e\x80-\xff]*$/

const VALUES: Readonly<Record<RequestValue, TextFor>> = {
  // The name by which upstreams know the project.
  'project.id': (_, project) => project?.alias ?? project?.id ?? '',
  'project.plan': (_, project) => project?.plan ?? '',
  'project.environment': (_, project) => project?.environment ?? '',
  'client.address': ({ client }) => client,
  host: ({ host }) => host,
  path: ({ path }) => path,
  'request.id': ({ id }) => id,
}

/** True for a text that is the same for every request. */
export function isConstant(text: string): boolean {
  return partsOf(text).length === 1
}

/** How a value is written where it stands. */
export type Encode = (value: string, name: RequestValue) => string

/** Parts of a URL before its query: other values than the project's are what a URL may hold. */
export const inUrl: Encode = (value, name) =>
  name.startsWith('project.') ? encodeURIComponent(value) : value

/** A value must not add an attribute, or another cookie. */
export const inCookie: Encode = value => value.replace(/[;,]/g, encodeURIComponent)

const asItIs: Encode = value => value

export function compileText(text: string, encode: Encode = asItIs): TextFor {
  const [first = '', ...rest] = partsOf(text)
  if (rest.length === 0) return () => first
  const parts = rest.map((part, i) => (i % 2 === 0 ? textOfValue(part as RequestValue, encode) : part))
  return (facts, project) => {
    let text = first
    for (const part of parts) text += typeof part === 'string' ? part : part(facts, project)
    if (FIELD_VALUE.test(text)) return text
    throw new Error(`a value of a route cannot be sent as a field: ${JSON.stringify(text)}`)
  }
}

function textOfValue(name: RequestValue, encode: Encode): TextFor {
  const textFor = VALUES[name]
  return (facts, project) => encode(textFor(facts, project), name)
}
