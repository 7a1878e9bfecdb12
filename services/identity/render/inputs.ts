/** One input for one leaf of the schema (docs/forms.md). */

import { type FormField, isFreeObject } from '../schema/field.js'
import { textOf } from '../schema/fragments.js'
import { ESCAPED } from '../schema/pattern-syntax.js'

/** What all nodes have in common. */
export interface Described {
  /** The name the field is submitted under: its dot path. */
  readonly name: string
  readonly label: string
  readonly description?: string
  readonly messages: readonly string[]
}

export type InputType =
  | 'text'
  | 'email'
  | 'url'
  | 'tel'
  | 'date'
  | 'time'
  | 'datetime-local'
  | 'number'
  | 'checkbox'
  | 'select'
  | 'textarea'

export interface Input extends Described {
  readonly type: 'input'
  readonly input: InputType
  readonly required: boolean
  /** The displayed text; for a checkbox `true` when it is ticked, else `false`. */
  readonly value: string
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  /** HTML attributes that hint at the schema's bounds. */
  readonly attributes: Readonly<Record<string, string>>
}

/**
 * Without date-time and time: a browser's inputs for them have no zone, so only a field that names its zone gets one.
 */
const BY_FORMAT: Readonly<Record<string, InputType>> = {
  email: 'email',
  uri: 'url',
  tel: 'tel',
  date: 'date',
}
const COMPLETED: Readonly<Record<string, string>> = { email: 'email', url: 'url', tel: 'tel' }
const READABLE: Partial<Record<InputType, RegExp>> = {
  number: /^-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?$/,
  date: /^\d{4}-\d{2}-\d{2}$/,
}
const LONG_TEXT = 250
/** Hints for values that are typed as plain text. */
const WRITTEN: Readonly<Record<string, string>> = {
  'date-time': 'Such as 2001-12-31T14:30:00Z.',
  time: 'Such as 14:30:00Z.',
}

/** The text below a label: the schema's description, else the value's format where a browser cannot help. */
export function hintOf(field: FormField): string | undefined {
  const { description, format } = field.display
  const zone = field.localTime && `Time zone: ${field.localTime.zone}.`
  if (description !== undefined) return zone ? `${description} ${zone}` : description
  if (zone) return zone
  if (isFreeObject(field)) return 'JSON, such as {"key": "value"}.'
  const isText = field.scalars.has('string') && !field.choices
  return isText && format !== undefined ? WRITTEN[format] : undefined
}

/** The input of a leaf. With `mayStayBlank` a boolean is not a checkbox, which always sends a value. */
export function inputNode(
  field: FormField,
  described: Described,
  texts: readonly string[],
  required: boolean,
  mayStayBlank: boolean,
): Input {
  const onlyBoolean = field.scalars.size === 1 && field.scalars.has('boolean')
  if (onlyBoolean && !mayStayBlank) return checkbox(field, described, texts, required)
  const value = texts.find(text => text !== '') ?? ''
  const blankAllowed = field.nullable || (field.choices?.some(choice => choice.value === '') ?? false)
  const common = { ...described, type: 'input' as const, required: required && !blankAllowed, value }
  const completed = field.display['x-autocomplete']
  const attributes: Record<string, string> = completed === undefined ? {} : { autocomplete: completed }
  if (onlyBoolean) {
    const words = [
      { value: 'true', label: 'Yes' },
      { value: 'false', label: 'No' },
    ]
    return { ...common, input: 'select', options: [BLANK, ...words], attributes }
  }
  if (field.choices) {
    const offered = field.choices.map(choice => ({ value: textOf(choice.value), label: choice.label || '–' }))
    const blank = offered.some(option => option.value === '') ? [] : [BLANK]
    return { ...common, input: 'select', options: [...blank, ...offered], attributes }
  }
  const shown = field.localTime?.toShown(value)
  if (field.localTime && (shown !== undefined || value === '')) {
    const { input } = field.localTime
    return { ...common, input, value: shown ?? '', attributes: { ...stepOf(shown ?? ''), ...attributes } }
  }
  const wanted = textInput(field, value)
  // A browser empties an input whose text is not of its type; the typed text has to stay so that it can be corrected.
  const input = READABLE[wanted]?.test(value) === false && value !== '' ? 'text' : wanted
  const bounds = input === 'number' ? numberBounds(field) : textBounds(field, input)
  return { ...common, input, attributes: { ...bounds, ...attributes } }
}

/** Without a step a browser rejects seconds. */
function stepOf(time: string): Record<string, string> {
  if (time.includes('.')) return { step: 'any' }
  return /:\d\d:\d\d$/.test(time) ? { step: '1' } : {}
}

const BLANK = { value: '', label: '' }

/** Ticking is required only where nothing but `true` is accepted. */
function checkbox(
  field: FormField,
  described: Described,
  texts: readonly string[],
  required: boolean,
): Input {
  const ticked = texts.some(text => text === 'true' || text === 'on')
  const onlyTrue = field.choices?.every(({ value }) => value === true) ?? false
  return {
    ...described,
    type: 'input',
    input: 'checkbox',
    required: required && onlyTrue,
    value: String(ticked),
    attributes: {},
  }
}

function textInput(field: FormField, value: string): InputType {
  if (field.kind === 'object') return 'textarea'
  const { scalars, display } = field
  if (scalars.size > 0 && [...scalars].every(scalar => scalar === 'number' || scalar === 'integer'))
    return 'number'
  if (scalars.size > 1) return 'text'
  const byFormat = BY_FORMAT[display.format ?? '']
  if (byFormat) return byFormat
  return (display.maxLength ?? 0) > LONG_TEXT || /[\r\n]/.test(value) ? 'textarea' : 'text'
}

function numberBounds(field: FormField): Record<string, string> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = field.display
  const whole = !field.scalars.has('number')
  // A browser counts steps from `min`, so for whole numbers both ends must be whole.
  const low = whole
    ? Math.max(
        ...[minimum, exclusiveMinimum === undefined ? undefined : Math.floor(exclusiveMinimum) + 1].map(
          ceiling,
        ),
      )
    : (minimum ?? exclusiveMinimum ?? Number.NEGATIVE_INFINITY)
  const high = whole
    ? Math.min(
        ...[maximum, exclusiveMaximum === undefined ? undefined : Math.ceil(exclusiveMaximum) - 1].map(floor),
      )
    : (maximum ?? exclusiveMaximum ?? Number.POSITIVE_INFINITY)
  return {
    step: whole ? '1' : 'any',
    ...(Number.isFinite(low) ? { min: String(low) } : {}),
    ...(Number.isFinite(high) ? { max: String(high) } : {}),
  }
}

function ceiling(bound: number | undefined): number {
  return bound === undefined ? Number.NEGATIVE_INFINITY : Math.ceil(bound)
}

function floor(bound: number | undefined): number {
  return bound === undefined ? Number.POSITIVE_INFINITY : Math.floor(bound)
}

function textBounds(field: FormField, input: InputType): Record<string, string> {
  const { minLength, maxLength, pattern } = field.display
  const completed = COMPLETED[input]
  const written = pattern === undefined || input === 'textarea' ? undefined : browserPattern(pattern)
  return {
    ...(completed === undefined ? {} : { autocomplete: completed }),
    ...(minLength === undefined ? {} : { minlength: String(minLength) }),
    // HTML counts UTF-16 units, the schema code points: one character may be two units.
    ...(maxLength === undefined ? {} : { maxlength: String(maxLength * 2) }),
    ...(written === undefined ? {} : { pattern: written }),
  }
}

/** A schema's pattern has been read before, so its classes end. */
const CLASS_OR_ESCAPE = /\\.|\[\^?((?:\\.|[^\]\\])*)\]?/gs
const ATOM = new RegExp(`${ESCAPED}|.`, 'gsu')

/**
 * HTML's pattern has to match the whole text, the schema's may match anywhere. Browsers compile it with the flag `v`,
 * which needs more escapes inside a class than the `u` of schemas. Undefined where a browser could not compile it.
 */
function browserPattern(pattern: string): string | undefined {
  const escaped = pattern.replace(CLASS_OR_ESCAPE, (part, inside: string | undefined) =>
    inside ? `${part.startsWith('[^') ? '[^' : '['}${escapedClass(inside)}]` : part,
  )
  // In some browsers (V8 11) `[^]` matches nothing under the flag `v`.
  const whole = String.raw`[\s\S]*(?:${escaped})[\s\S]*`
  try {
    new RegExp(whole, 'v')
    return whole
  } catch {
    return undefined
  }
}

function escapedClass(inside: string): string {
  const atoms = inside.match(ATOM) ?? []
  let escaped = ''
  for (let at = 0; at < atoms.length; at++) {
    escaped += escapedAtom(atoms[at] as string)
    const end = atoms[at + 2]
    if (atoms[at + 1] === '-' && end !== undefined) {
      escaped += `-${escapedAtom(end)}`
      at += 2
    }
  }
  return escaped
}

function escapedAtom(atom: string): string {
  return /^[()[\]{}/|-]$/.test(atom) ? `\\${atom}` : atom
}
