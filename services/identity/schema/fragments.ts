/** What the fragments of a schema that meet at one path allow there: types, fixed values, and how an input shows them. */
import { isJsonObject, type JsonObject, type JsonValue, jsonType, own } from '../../json.js'
import { type Choice, DISPLAY, type Display } from './field.js'

export type Type = 'boolean' | 'integer' | 'number' | 'string' | 'object' | 'array' | 'null'
export type Types = ReadonlySet<Type>
export type ResolveSchema = (reference: string) => JsonValue

/**
 * How binding a fragment is: always, in one branch (anyOf, oneOf, then, else, dependencies), or only as the test of an
 * `if`.
 */
export type Role = 'always' | 'branch' | 'test'

/** One schema that applies at a path. */
export interface Fragment {
  readonly schema: JsonObject
  readonly role: Role
}

/** Thrown without the path; the compiler adds it. */
export class KindConflict extends Error {}

/**
 * `fragments` and everything they include at the same place, through $ref, allOf, anyOf, oneOf, if/then/else and
 * dependencies.
 */
export function spread(fragments: readonly Fragment[], resolve: ResolveSchema): Fragment[] {
  const found: Fragment[] = []
  const seen = { always: new Set<JsonObject>(), branch: new Set<JsonObject>(), test: new Set<JsonObject>() }
  function add(schema: JsonValue | undefined, role: Role): void {
    if (!isJsonObject(schema) || seen[role].has(schema)) return
    seen[role].add(schema)
    found.push({ schema, role })
    const weaker = role === 'always' ? 'branch' : role
    add(referenced(schema, resolve), role)
    for (const part of list(schema, 'allOf')) add(part, role)
    for (const key of ['anyOf', 'oneOf']) for (const part of list(schema, key)) add(part, weaker)
    add(own(schema, 'then'), weaker)
    add(own(schema, 'else'), weaker)
    add(own(schema, 'if'), 'test')
    const dependencies = own(schema, 'dependencies')
    if (isJsonObject(dependencies)) for (const part of Object.values(dependencies)) add(part, weaker)
  }
  for (const { schema, role } of fragments) add(schema, role)
  return found
}

/**
 * The types that `type`, `const` or `enum` declare below one fragment; undefined when it declares none. Throws
 * KindConflict.
 */
export function typesOf(schema: JsonValue | undefined, resolve: ResolveSchema): Types | undefined {
  if (!isJsonObject(schema)) return undefined
  let types = declared(schema)
  for (const part of [referenced(schema, resolve), ...list(schema, 'allOf')])
    types = both(types, typesOf(part, resolve))
  for (const key of ['anyOf', 'oneOf']) {
    const branches = list(schema, key).map(part => typesOf(part, resolve))
    if (branches.length > 0 && branches.every(branch => branch !== undefined)) {
      types = both(types, new Set(branches.flatMap(branch => [...branch])))
    }
  }
  for (const key of ['if', 'then', 'else']) {
    const conditional = typesOf(own(schema, key), resolve)
    if (types === undefined) types = conditional
    else both(types, conditional)
  }
  return types
}

/** The types that all fragments of one path agree on; undefined when none declares any. Throws KindConflict. */
export function agreedTypes(fragments: readonly Fragment[], resolve: ResolveSchema): Types | undefined {
  const stated = fragments.map(({ schema, role }) => ({ role, types: typesOf(schema, resolve) }))
  const bindings = stated.filter(({ role }) => role === 'always').map(({ types }) => types)
  const others = stated.filter(({ role }) => role !== 'always').map(({ types }) => types)
  const bound = bindings.reduce<Types | undefined>(both, undefined)
  if (bound) {
    for (const types of others) both(bound, types)
    return bound
  }
  const known = others.filter(types => types !== undefined)
  const widest = known.find(types => known.every(other => covers(types, other)))
  if (known.length > 0 && !widest) throw new KindConflict(conflict(known))
  return widest && new Set(known.flatMap(types => [...types]))
}

/** The schemas of a list keyword, or none. */
export function list(schema: JsonObject, key: string): JsonValue[] {
  const value = own(schema, key)
  return Array.isArray(value) ? value : []
}

/** The schema that a fragment's `$ref` refers to. */
export function referenced(schema: JsonObject, resolve: ResolveSchema): JsonValue | undefined {
  const reference = own(schema, '$ref')
  return typeof reference === 'string' ? resolve(reference) : undefined
}

function declared(schema: JsonObject): Types | undefined {
  const type = own(schema, 'type')
  if (typeof type === 'string') return new Set([type as Type])
  if (Array.isArray(type)) return new Set(type as Type[])
  const fixed = own(schema, 'const')
  const values = fixed === undefined ? own(schema, 'enum') : [fixed]
  return Array.isArray(values) ? new Set(values.map(jsonType)) : undefined
}

/** Intersection, in which an integer also counts as a number. */
function both(a: Types | undefined, b: Types | undefined): Types | undefined {
  if (!a || !b) return a ?? b
  const shared = new Set([...a].filter(type => has(b, type)).concat([...b].filter(type => has(a, type))))
  if (shared.size === 0) throw new KindConflict(conflict([a, b]))
  return shared
}

function covers(wide: Types, narrow: Types): boolean {
  return [...narrow].every(type => type === 'null' || has(wide, type))
}

function has(types: Types, type: Type): boolean {
  return types.has(type) || (type === 'integer' && types.has('number'))
}

function conflict(all: readonly Types[]): string {
  return `is declared with different types (${all.map(types => [...types].join(' or ')).join('; ')})`
}

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

/** True when some fragment declares a type or properties, which fixed values then only narrow. */
export function isTyped(parts: readonly Fragment[]): boolean {
  return parts.some(({ schema }) => Object.hasOwn(schema, 'type') || Object.hasOwn(schema, 'properties'))
}

/** Without a declared type, keywords imply it; a schema without any of them takes text. */
export function impliedTypes(parts: readonly Fragment[]): Types {
  const says = (...keywords: string[]) =>
    parts.some(({ schema }) => keywords.some(key => Object.hasOwn(schema, key)))
  if (says('properties', 'required', 'additionalProperties', 'patternProperties'))
    return new Set<Type>(['object'])
  if (says('items', 'minItems', 'maxItems', 'uniqueItems')) return new Set<Type>(['array'])
  if (says('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'))
    return new Set<Type>(['number'])
  return new Set<Type>(['string'])
}

/**
 * The display attributes of the fragments of one path. The first statement wins: a fragment's own come before those it
 * refers to.
 */
export function displayOf(parts: readonly Fragment[]): Display {
  const display: Record<string, JsonValue> = {}
  for (const { schema } of parts.filter(({ role }) => role === 'always')) {
    for (const [key, type] of Object.entries(DISPLAY)) {
      const value = own(schema, key)
      if (value === undefined || Object.hasOwn(display, key)) continue
      if (type === 'any' || typeof value === type) display[key] = value
    }
  }
  return display as Display
}
