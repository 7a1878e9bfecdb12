/** Messages for validation errors. They describe the schema, never the submitted value. */

/** One problem of a submission. `path` is the dot path from `traits`; '' is the whole document. */
export interface FieldError {
  readonly path: string
  readonly code: string
  /** A sentence for people; it never repeats a submitted value. */
  readonly message: string
}

/** Most errors reported at once: enough for any person, too few to make a hostile document costly. */
export const MAX_ERRORS = 200

export const TOO_DEEP = 'This is nested too deep.'
export const TOO_LARGE = 'This number is too large.'
export const INEXACT = 'This whole number is too large to be stored exactly.'

const FORMATS: Readonly<Record<string, string>> = {
  email: 'Enter an e-mail address such as name@example.com.',
  date: 'Enter a date as year-month-day, such as 2001-12-31.',
  time: 'Enter a time with its zone, such as 14:30:00Z.',
  'date-time': 'Enter a date and time with its zone, such as 2001-12-31T14:30:00Z.',
  uri: 'Enter a web address such as https://example.com.',
  tel: 'Enter a telephone number such as +44 20 7946 0000.',
}

const SENTENCES: Readonly<Record<string, string>> = {
  required: 'This is required.',
  dependencies: 'This is required together with another field.',
  pattern: 'This does not have the required format.',
  additionalProperties: 'This has an unknown field.',
  additionalItems: 'This has more items than allowed.',
  uniqueItems: 'Each item may be given only once.',
  contains: 'At least one item has to meet the requirement.',
  enum: 'Choose one of the offered values.',
  anyOf: 'This matches none of the accepted alternatives.',
  oneOf: 'This has to match exactly one of the accepted alternatives.',
  if: 'This conflicts with another answer.',
  'false schema': 'This must be left out.',
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'nothing',
}

/** The message for one failed keyword with ajv's parameters, which come from the schema. */
export function validationMessage(keyword: string, params: Readonly<Record<string, unknown>>): string {
  const limit = String(params.limit)
  switch (keyword) {
    case 'const':
      // Accepting terms and the like: the field is a checkbox.
      return params.allowedValue === true
        ? 'This has to be accepted.'
        : 'This has to be the one accepted value.'
    case 'type':
      return typeMessage([params.type].flat().map(String))
    case 'format':
      return FORMATS[String(params.format)] ?? 'This does not have the required format.'
    case 'minLength':
      return limit === '1' ? 'This must not be blank.' : `Use at least ${limit} characters.`
    case 'maxLength':
      return `Use at most ${limit} characters.`
    case 'minimum':
      return `Use a number of at least ${limit}.`
    case 'maximum':
      return `Use a number of at most ${limit}.`
    case 'exclusiveMinimum':
      return `Use a number greater than ${limit}.`
    case 'exclusiveMaximum':
      return `Use a number less than ${limit}.`
    case 'multipleOf':
      return `Use a multiple of ${String(params.multipleOf)}.`
    case 'minItems':
      return `Give at least ${limit}.`
    case 'maxItems':
      return `Give at most ${limit}.`
    case 'minProperties':
      return `Fill in at least ${limit}.`
    case 'maxProperties':
      return `Fill in at most ${limit}.`
    default:
      return SENTENCES[keyword] ?? 'This is not allowed.'
  }
}

/** The message for a value of the wrong type, given the names of the accepted ones. */
export function typeMessage(types: readonly string[]): string {
  return `This has to be ${nouns(types)}.`
}

/** What a meta-schema keyword allows, for the author of a schema. */
export function allowedBy(keyword: string, params: Readonly<Record<string, unknown>>): string {
  switch (keyword) {
    case 'type':
      return nouns([params.type].flat().map(String))
    case 'enum':
      return `one of ${[params.allowedValues].flat().join(', ')}`
    case 'minimum':
      return `at least ${String(params.limit)}`
    case 'exclusiveMinimum':
      return `greater than ${String(params.limit)}`
    case 'minItems':
      return 'a list that is not empty'
    case 'uniqueItems':
      return 'a list without repeated items'
    default:
      return `valid by "${keyword}"`
  }
}

function nouns(types: readonly string[]): string {
  return types.map(type => NOUNS[type] ?? type).join(' or ')
}
