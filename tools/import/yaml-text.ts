/** Plain data as YAML to read and edit: block style, with flow style for lists of words. */

/** An entry, and the place it came from, which is written above it as a comment. */
export class From {
  readonly place: string
  readonly value: object

  constructor(place: string, value: object) {
    this.place = place
    this.value = value
  }
}

/** Text that YAML reads as the same text without quotes, also between brackets. */
const PLAIN = /^[A-Za-z/](?:[A-Za-z0-9 ._/*-]*[A-Za-z0-9._/*-])?$/
/** Durations. */
const LENGTH = /^\d+(?:ms|s|m|h|d)$/
const NO_TEXT = /^(null|true|false)$/i

/** A whole document. */
export function yamlText(document: object): string {
  return `${block(document, '').join('\n')}\n`
}

function block(value: unknown, pad: string): string[] {
  if (Array.isArray(value)) return value.flatMap(item => listItem(item, pad))
  return Object.entries(value as object).flatMap(([key, member]) =>
    member === undefined ? [] : entry(scalar(key), member, pad),
  )
}

function entry(key: string, value: unknown, pad: string): string[] {
  const { inner, comment } = opened(value)
  const head = comment === undefined ? [] : [`${pad}# ${comment}`]
  if (isFlow(inner)) return [...head, `${pad}${key}: ${flow(inner)}`]
  return [...head, `${pad}${key}:`, ...block(inner, `${pad}  `)]
}

function listItem(value: unknown, pad: string): string[] {
  const { inner, comment } = opened(value)
  const head = comment === undefined ? [] : [`${pad}# ${comment}`]
  if (isFlow(inner)) return [...head, `${pad}- ${flow(inner)}`]
  const [first = '', ...rest] = block(inner, `${pad}  `)
  return [...head, `${pad}- ${first.slice(pad.length + 2)}`, ...rest]
}

const opened = (value: unknown): { inner: unknown; comment?: string } =>
  value instanceof From ? { inner: value.value, comment: value.place } : { inner: value }

/** True for scalars, lists of scalars, and short maps of scalars. */
function isFlow(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof From) return false
  const members: unknown[] = Object.values(value)
  if (Array.isArray(value)) return members.every(member => typeof member !== 'object')
  return members.every(member => typeof member !== 'object') && flow(value).length <= 80
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null) return scalar(value)
  const pairs = Object.entries(value).filter(([, member]) => member !== undefined)
  return pairs.length === 0
    ? '{}'
    : `{ ${pairs.map(([key, member]) => `${scalar(key)}: ${flow(member)}`).join(', ')} }`
}

const scalar = (value: unknown): string =>
  typeof value === 'string' && (PLAIN.test(value) || LENGTH.test(value)) && !NO_TEXT.test(value)
    ? value
    : JSON.stringify(value)
