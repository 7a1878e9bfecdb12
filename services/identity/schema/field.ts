/** The path table: what the parser and the renderer share about an identity schema. */
import type { JsonValue } from '../../json.js'
import type { LocalTime } from './local-time.js'

export type Scalar = 'boolean' | 'integer' | 'number' | 'string'

/** One allowed value of an enum or const, with the title a oneOf branch gave it. */
export interface Choice {
  readonly value: JsonValue
  readonly label: string
}

/** What a rendered input shows and hints at, with the type of each; typing never depends on it. */
export const DISPLAY = {
  title: 'string',
  description: 'string',
  default: 'any',
  format: 'string',
  pattern: 'string',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  minLength: 'number',
  maxLength: 'number',
  minItems: 'number',
  maxItems: 'number',
  /** What a browser may fill in: a token of HTML's autocomplete attribute. */
  'x-autocomplete': 'string',
} as const

export type Display = {
  readonly [Key in keyof typeof DISPLAY]?: {
    string: string
    number: number
    any: JsonValue
  }[(typeof DISPLAY)[Key]]
}

/** One place of the table. In a recursive schema a field is its own descendant. */
export interface FormField {
  readonly kind: 'object' | 'array' | 'scalar'
  /** Types a scalar's text may become; empty when only `choices` decide. */
  readonly scalars: ReadonlySet<Scalar>
  readonly nullable: boolean
  readonly choices: readonly Choice[] | undefined
  readonly display: Display
  readonly children: ReadonlyMap<string, FormField>
  /** Names of children that are required in any case (not only in a branch). */
  readonly required: ReadonlySet<string>
  /** True when JSON may have properties that the table does not name; a form never may. */
  readonly open: boolean
  /** Fields of the first items of a tuple; empty for a plain list. */
  readonly tuple: readonly FormField[]
  /** Field of every further item; undefined when there may be none. */
  readonly items: FormField | undefined
  /** True when two identities of one project may not share this value (`x-identifier`). */
  readonly identifier: boolean
  /** How times without a zone are interpreted (`x-timezone`). */
  readonly localTime: LocalTime | undefined
}

/** Deepest path and longest name looked up; anything beyond is not in the table (rule 14). */
export const MAX_SEGMENTS = 64
export const MAX_NAME_BYTES = 512

/** Most items in one array. */
export const MAX_ITEMS = 1000

/** The field of an array's item at `index`, undefined beyond the end of a closed tuple. */
export function itemField(array: FormField, index: number): FormField | undefined {
  return array.tuple[index] ?? array.items
}

/** True for an object that is entered as one JSON text because the schema names no properties of it. */
export function isFreeObject(field: FormField): boolean {
  return field.kind === 'object' && field.children.size === 0
}

/** One step from a field to the next: a property's name, or an array index. */
export interface Step {
  readonly key: string | number
  readonly field: FormField
}

const INDEX = /^(?:0|[1-9]\d{0,14})$/

/** Looks up a submitted name below `root`. Undefined when the table does not contain it. */
export function findPath(root: FormField, name: string): Step[] | undefined {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return undefined
  const segments = name.split('.')
  if (segments.length > MAX_SEGMENTS) return undefined
  const steps: Step[] = []
  let field = root
  for (let at = 0; at < segments.length; ) {
    const step = field.kind === 'array' ? itemStep(field, segments[at]) : childStep(field, segments, at)
    if (!step) return undefined
    steps.push(step)
    field = step.field
    at += typeof step.key === 'number' ? 1 : step.key.split('.').length
  }
  return steps
}

function itemStep(array: FormField, segment: string | undefined): Step | undefined {
  if (segment === undefined || !INDEX.test(segment)) return undefined
  const key = Number(segment)
  const field = itemField(array, key)
  return field && { key, field }
}

/** A property's own name may contain dots; the compiler ensures that only one reading is possible. */
function childStep(parent: FormField, segments: readonly string[], at: number): Step | undefined {
  if (parent.children.size === 0) return undefined
  let key = ''
  for (let end = at; end < segments.length; end++) {
    key = end === at ? (segments[end] as string) : `${key}.${segments[end]}`
    const field = parent.children.get(key)
    if (field) return { key, field }
  }
  return undefined
}
