/** Header fields that a route changes, of those that another gateway changed. */
import { isFieldOfGateway, lettersOf } from '../../config/words/field-names.js'
import type { RequestValue } from '../../config/words/request-values.js'
import type { RouteParts } from './routes.js'

/** Changes of the fields of requests, or of responses, as gateway.yaml has them. */
export interface FieldChanges {
  readonly set?: Readonly<Record<string, string>>
  readonly add?: Readonly<Record<string, string>>
  readonly remove?: readonly string[]
}

export interface FieldChange {
  readonly kind: keyof FieldChanges
  /** In lower case. */
  readonly name: string
  readonly value: string
}

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const VALUE = /^[ -~]*$/
const LONGEST_VALUE = 4096

/** How a route writes what a request says. */
export const valueText = (name: RequestValue): string => `\${${name}}`

/** False for a text that would be a variable here, of the request or of the environment. */
export const isPlainText = (text: string): boolean => !text.includes('${')

/** The change, if a route can make it. A second cookie cannot be set beside the first, so none is. */
export function changeOf(
  of: 'request' | 'response',
  kind: FieldChange['kind'],
  field: string,
  value = '',
): FieldChange | undefined {
  const name = field.toLowerCase()
  const isValue = value.length <= LONGEST_VALUE && VALUE.test(value) && value.trim() === value
  const isCookie = of === 'response' && kind !== 'remove' && lettersOf(name) === 'setcookie'
  return NAME.test(name) && isValue && !isCookie && !isFieldOfGateway(name, of)
    ? { kind, name, value }
    : undefined
}

/** All changes, of which no two are of one field: what is removed and then added is set, and two that are added are a list. */
export function fieldsWith(changes: readonly FieldChange[]): FieldChanges | undefined {
  const byLetters = new Map<string, FieldChange>()
  for (const one of changes) {
    const present = byLetters.get(lettersOf(one.name))
    const isMore = one.kind === 'add' && present !== undefined
    const joined = isMore && present.kind !== 'remove' ? `${present.value}, ${one.value}` : one.value
    const kind = isMore && present.kind !== 'add' ? 'set' : one.kind
    byLetters.set(lettersOf(one.name), { kind, name: one.name, value: joined })
  }
  const all = [...byLetters.values()]
  const of = (kind: FieldChange['kind']): Record<string, string> =>
    Object.fromEntries(all.flatMap(one => (one.kind === kind ? [[one.name, one.value]] : [])))
  const lists = { set: of('set'), add: of('add'), remove: Object.keys(of('remove')) }
  const written = Object.entries(lists).filter(([, some]) => Object.keys(some).length > 0)
  return written.length === 0 ? undefined : Object.fromEntries(written)
}

/** Both as a route has them. */
export const headersOf = (
  request: FieldChanges | undefined,
  response: FieldChanges | undefined,
): Pick<RouteParts, 'headers'> =>
  request === undefined && response === undefined
    ? {}
    : { headers: { ...(request && { request }), ...(response && { response }) } }
