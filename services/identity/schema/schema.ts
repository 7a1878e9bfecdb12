/**
 * Compiles an identity schema once into the path table that the parser and the renderer share (docs/forms.md).
 * Fragments that meet at one path, through $ref, allOf, anyOf, oneOf, if/then/else and dependencies, become one field;
 * the same set of fragments always gives the same field, which keeps recursive schemas finite.
 */

import { isJsonObject, type JsonObject, type JsonValue, own } from '../../json.js'
import { compileValidator, type Validate } from '../decode/validate.js'
import { buildNodes, countNodes, MAX_NODES } from '../render/nodes.js'
import { loadDocument, type SchemaDocument, SchemaError } from './document.js'
import { refuseCostly } from './evaluations.js'
import { type FormField, MAX_SEGMENTS, type Scalar } from './field.js'
import {
  agreedChoices,
  agreedTypes,
  displayOf,
  type Fragment,
  impliedTypes,
  isTyped,
  KindConflict,
  type Role,
  spread,
  type Type,
  type Types,
} from './fragments.js'
import { localTimeOf } from './local-time.js'

/** A schema ready for use: the table from its root, and the validator of `{traits}`. */
export interface CompiledSchema {
  /** The document's `$id`, else `default`. */
  readonly id: string
  /** The document; its only child in the table is `traits`. */
  readonly root: FormField
  readonly validate: Validate
  /** Dot paths below `traits` whose values are unique within a project. */
  readonly identifiers: readonly (readonly string[])[]
}

type Draft = { -readonly [Key in keyof FormField]: FormField[Key] }

const MAX_FIELDS = 5000
const SCALARS: readonly Type[] = ['boolean', 'integer', 'number', 'string']

/** Compiles a draft-07 identity schema. Throws SchemaError with a sentence that says where and what to change. */
export function compileSchema(schema: unknown): CompiledSchema {
  const document = loadDocument(schema)
  refuseCostly(document)
  const validate = compileValidator(document)
  const table = new TableBuilder(document)
  const whole = table.field([{ schema: document.root, role: 'always' }], '')
  const traits = whole.children.get('traits')
  if (traits?.kind !== 'object') {
    throw new SchemaError('the schema must be an object with an object property "traits"')
  }
  const root: FormField = { ...whole, kind: 'object', children: new Map([['traits', traits]]), open: false }
  if (countNodes(buildNodes({ root }, { texts: [], inner: new Map() }, [])) > MAX_NODES) {
    throw new SchemaError(
      `the form would have more than ${MAX_NODES} fields; declare fewer properties, a smaller minItems, or fewer definitions that refer to each other`,
    )
  }
  const id = own(document.root, '$id')
  return { id: typeof id === 'string' ? id : 'default', root, validate, identifiers: findIdentifiers(traits) }
}

class TableBuilder {
  readonly #document: SchemaDocument
  readonly #fields = new Map<string, Draft>()
  readonly #numbers = new Map<JsonObject, number>()

  constructor(document: SchemaDocument) {
    this.#document = document
  }

  /** The field to which all `given` fragments apply. `path` only names the place in an error. */
  field(given: readonly Fragment[], path: string): FormField {
    const fragments = given.map(fragment => this.#behindReference(fragment))
    const key = [...new Set(fragments.map(({ schema, role }) => `${role}${this.#number(schema)}`))]
      .sort()
      .join()
    const known = this.#fields.get(key)
    if (known) return known
    if (this.#fields.size >= MAX_FIELDS)
      throw new SchemaError(`the schema describes more than ${MAX_FIELDS} fields`)
    if (path.split(/[.[]/).length > MAX_SEGMENTS)
      throw new SchemaError(`${path}: fields may be nested at most ${MAX_SEGMENTS} deep`)
    const parts = spread(fragments, this.#document.resolve)
    const choices = agreedChoices(fragments, this.#document.resolve)
    const types = this.#types(fragments, parts, path, choices)
    const display = displayOf(parts)
    const field: Draft = {
      kind: types.has('object') ? 'object' : types.has('array') ? 'array' : 'scalar',
      scalars: new Set(SCALARS.filter(type => types.has(type)) as Scalar[]),
      nullable: types.has('null'),
      choices,
      display,
      children: new Map(),
      required: new Set(),
      open: false,
      tuple: [],
      items: undefined,
      identifier: parts.some(({ schema }) => own(schema, 'x-identifier') === true),
      localTime: localTimeOf(parts, display.format, path),
    }
    this.#fields.set(key, field)
    if (field.kind === 'object') this.#fillObject(field, parts, path)
    else if (field.kind === 'array') this.#fillArray(field, parts, path)
    else this.#fillScalar(field, parts)
    return field
  }

  #types(
    fragments: readonly Fragment[],
    parts: readonly Fragment[],
    path: string,
    choices: FormField['choices'],
  ): Types {
    try {
      const types = agreedTypes(fragments, this.#document.resolve) ?? impliedTypes(parts)
      // Fixed values are matched by their text, whatever their types.
      if (choices && !isTyped(parts))
        return new Set([...types].filter(type => type !== 'object' && type !== 'array'))
      const kinds = (['object', 'array'] as const).filter(type => types.has(type)).length
      if (kinds > 1 || (kinds === 1 && SCALARS.some(type => types.has(type)))) {
        throw new KindConflict('mixes an object or an array with other types')
      }
      return types
    } catch (error) {
      if (!(error instanceof KindConflict)) throw error
      throw new SchemaError(`${path || 'the schema'} ${error.message}; a form field needs one kind of value`)
    }
  }

  #fillObject(field: Draft, parts: readonly Fragment[], path: string): void {
    const byName = new Map<string, Fragment[]>()
    const required = new Set<string>()
    for (const { schema, role } of parts) {
      const properties = own(schema, 'properties')
      if (isJsonObject(properties)) {
        for (const name of Object.keys(properties)) {
          const fragment = asFragment(properties[name], role)
          byName.set(name, [...(byName.get(name) ?? []), fragment])
        }
      }
      const names = own(schema, 'required')
      if (role === 'always' && Array.isArray(names)) for (const name of names) required.add(String(name))
      if (Object.hasOwn(schema, 'additionalProperties') || Object.hasOwn(schema, 'patternProperties')) {
        field.open = true
      }
    }
    if (byName.size === 0) field.open = true
    refuseAmbiguousNames(byName, path)
    field.required = required
    // Only the traits are a form, not the root.
    const children = path === '' ? [...byName].filter(([name]) => name === 'traits') : [...byName]
    field.children = new Map(
      children.map(([name, fragments]) => [name, this.field(fragments, path ? `${path}.${name}` : name)]),
    )
  }

  #fillArray(field: Draft, parts: readonly Fragment[], path: string): void {
    const every: Fragment[] = []
    const further: Fragment[] = []
    const positions: Fragment[][] = []
    let closed = false
    for (const { schema, role } of parts) {
      const items = own(schema, 'items')
      if (Array.isArray(items)) {
        items.forEach((item, index) => {
          positions[index] = [...(positions[index] ?? []), asFragment(item, role)]
        })
        const additional = own(schema, 'additionalItems')
        if (additional === false) closed = true
        else if (additional !== undefined) further.push(asFragment(additional, role))
      } else if (items !== undefined) every.push(asFragment(items, role))
    }
    if (every.length > 0 && positions.length > 0) {
      throw new SchemaError(`${path} is declared both as a list and as a tuple; keep one`)
    }
    field.tuple = positions.map((fragments, index) => this.field(fragments, `${path}.${index}`))
    field.items = closed ? undefined : this.field([...every, ...further], `${path}[]`)
  }

  #fillScalar(field: Draft, parts: readonly Fragment[]): void {
    if (field.choices?.some(({ value }) => value === null)) field.nullable = true
    const onlyBooleans = field.scalars.size === 1 && field.scalars.has('boolean')
    // Untyped enum and const values are matched by their text; a lone boolean is still sent as a checkbox pair.
    if (field.choices && !isTyped(parts) && !onlyBooleans) field.scalars = new Set()
  }

  /** A bare reference is replaced by its target, so that a recursive schema leads back to the same field. */
  #behindReference({ schema, role }: Fragment): Fragment {
    let target: JsonValue = schema
    while (isJsonObject(target) && typeof target.$ref === 'string' && Object.keys(target).length === 1) {
      target = this.#document.resolve(target.$ref)
    }
    return asFragment(target, role)
  }

  #number(schema: JsonObject): number {
    const known = this.#numbers.get(schema) ?? this.#numbers.size
    this.#numbers.set(schema, known)
    return known
  }
}

function asFragment(schema: JsonValue | undefined, role: Role): Fragment {
  return { schema: isJsonObject(schema) ? schema : {}, role }
}

/** Two children such as `a.b` and `a` would make field names ambiguous. */
function refuseAmbiguousNames(children: ReadonlyMap<string, unknown>, path: string): void {
  for (const name of children.keys()) {
    const place = path ? `${path}: ` : ''
    if (name === '') throw new SchemaError(`${place}a property needs a name; "" cannot be a form field`)
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      if (children.has(name.slice(0, dot))) {
        const other = name.slice(0, dot)
        throw new SchemaError(
          `${place}the properties "${name}" and "${other}" make field names ambiguous; rename one`,
        )
      }
    }
  }
}

/** Paths below `traits` whose values are unique within a project. Throws SchemaError. */
export function findIdentifiers(traits: FormField): string[][] {
  const found: string[][] = []
  const walk = (field: FormField, path: string[], open: ReadonlySet<FormField>): void => {
    if (open.has(field) || open.size >= MAX_SEGMENTS) return
    if (field.identifier) {
      if (!field.scalars.has('string'))
        throw new SchemaError(`${path.join('.')}: x-identifier must stand on a string`)
      found.push(path)
    }
    for (const item of [...field.tuple, field.items]) {
      if (item?.identifier)
        throw new SchemaError(`${path.join('.')}: x-identifier cannot stand inside an array`)
    }
    for (const [name, child] of field.children) walk(child, [...path, name], new Set(open).add(field))
  }
  walk(traits, [], new Set())
  return found
}
