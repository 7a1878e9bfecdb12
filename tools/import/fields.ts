/** Header fields that other gateways set, add and remove, as a route changes them. */
import { isFieldOfGateway, lettersOf } from '../../config/words/field-names.js'
import type { RequestValue } from '../../config/words/request-values.js'

/** One change of a field of requests or responses. */
export interface FieldChange {
  readonly how: 'set' | 'add' | 'remove'
  readonly name: string
  /** As it is written in a route; none for one that is removed. */
  readonly value?: string
}

/** The changes of a route, as they are written. */
export interface ImportedHeaders {
  readonly request?: object | undefined
  readonly response?: object | undefined
}

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const VALUE = /^[!-~](?:[ -~]{0,4094}[!-~])?$/

/** True for a field that a route may change. */
export const isChangeable = (name: string, of: 'request' | 'response'): boolean =>
  NAME.test(name.toLowerCase()) && !isFieldOfGateway(name.toLowerCase(), of)

/**
 * A text of another gateway as a route writes it; undefined where it has a variable that routes do not know.
 *
 * @param values what its variables are here, each written as in `$host`
 */
export function routeText(text: string, values: Readonly<Record<string, RequestValue>>): string | undefined {
  let isKnown = true
  const written = text.replace(/\$(?:\{(\w*)\}?|(\w*))/g, (_, braced = '', bare = '') => {
    const value = Object.hasOwn(values, braced || bare) ? values[braced || bare] : undefined
    isKnown &&= value !== undefined
    return `\${${value}}`
  })
  return isKnown && VALUE.test(written) ? written : undefined
}

/** The changes in the form of a route, each field once: what is removed and then added is set. */
export function changesOf(of: 'request' | 'response', changes: readonly FieldChange[]): object | undefined {
  const byLetters = new Map<string, FieldChange>()
  for (const change of changes) {
    const name = change.name.toLowerCase()
    const letters = lettersOf(name)
    const present = byLetters.get(letters)
    const isReplaced = present?.how === 'remove' && change.how === 'add' && name !== 'set-cookie'
    if (!isChangeable(name, of)) continue
    if (present === undefined || isReplaced)
      byLetters.set(letters, { ...change, name, how: isReplaced ? 'set' : change.how })
  }
  const all = [...byLetters.values()]
  if (all.length === 0) return undefined
  const valued = (how: FieldChange['how']): object | undefined => {
    const some = all.filter(one => one.how === how)
    return some.length === 0
      ? undefined
      : Object.fromEntries(some.map(({ name, value = '' }) => [name, value]))
  }
  const removed = all.flatMap(({ how, name }) => (how === 'remove' ? [name] : []))
  return { set: valued('set'), add: valued('add'), ...(removed.length > 0 && { remove: removed }) }
}
