/** The fixed values a path allows by enum and const. */

import { isJsonObject, type JsonValue, own } from '../../json.js'
import type { Choice } from './field.js'
import { type Fragment, list, type ResolveSchema, referenced } from './kinds.js'

/** The values that all fragments of one path allow; undefined when any value is allowed. */
export function agreedChoices(fragments: readonly Fragment[], resolve: ResolveSchema): Choice[] | undefined {
  const found = fragments.map(({ schema, role }) => ({ role, choices: choicesOf(schema, resolve) }))
  const always = found.filter(({ role, choices }) => role === 'always' && choices)
  if (always.length > 0) {
    const [first, ...rest] = always.map(({ choices }) => choices)
    return [...(first ?? [])]
      .filter(([key]) => rest.every(other => other?.has(key)))
      .map(([, choice]) => choice)
  }
  // Branches limit the values only when nothing outside them allows more; the test of an `if` limits nothing.
  const branches = found.filter(({ role }) => role !== 'test')
  if (found.some(({ role }) => role === 'always') || branches.some(({ choices }) => !choices))
    return undefined
  const union = new Map(branches.flatMap(({ choices }) => [...(choices ?? [])]))
  return union.size > 0 ? [...union.values()] : undefined
}

/**
 * One fragment's allowed values, by their JSON text, with titles from branches such as `{const, title}`; undefined
 * when any value is allowed.
 */
function choicesOf(
  schema: JsonValue | undefined,
  resolve: ResolveSchema,
): Map<string, { value: JsonValue; label: string }> | undefined {
  if (!isJsonObject(schema)) return undefined
  const values = own(schema, 'enum')
  const fixed = own(schema, 'const')
  const title = own(schema, 'title')
  const listed = fixed !== undefined ? [fixed] : Array.isArray(values) ? values : undefined
  let choices =
    listed &&
    new Map(
      listed.map(value => {
        const label = fixed !== undefined && typeof title === 'string' ? title : textOf(value)
        return [JSON.stringify(value), { value, label }]
      }),
    )
  const narrow = (other: typeof choices) => {
    const before = choices
    choices = other && before ? new Map([...other].filter(([key]) => before.has(key))) : (before ?? other)
  }
  for (const part of [referenced(schema, resolve), ...list(schema, 'allOf')]) narrow(choicesOf(part, resolve))
  for (const key of ['anyOf', 'oneOf']) {
    const branches = list(schema, key).map(part => choicesOf(part, resolve))
    if (branches.length > 0 && branches.every(branch => branch !== undefined)) {
      narrow(new Map(branches.flatMap(branch => [...branch])))
    }
  }
  return choices
}

/** The text a form sends for an allowed value. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value
  return value === null ? '' : JSON.stringify(value)
}
