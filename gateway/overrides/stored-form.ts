/** Reads back what is stored in Redis. Another release may use another form, which must not affect requests. */
import { isCidr, isDayOrInstant } from '../../config/formats.js'
import { ACCESS_ACTIONS, MODES } from '../../config/words/words.js'
import type { Collection } from './store.js'

type Fields = Readonly<Record<string, unknown>>

const isText = (value: unknown): value is string => typeof value === 'string'
const isOneOf = (words: readonly string[], value: unknown) => isText(value) && words.includes(value)
const isMadeBy = ({ at, by }: Fields) => isText(at) && isText(by)
const isEnd = (until: unknown) => until === undefined || (isText(until) && isDayOrInstant(until))
const areAll = (values: unknown, is: (text: string) => boolean) =>
  Array.isArray(values) && values.every(value => isText(value) && is(value))

const FORMS: Readonly<Record<Collection, (value: Fields) => boolean>> = {
  access: ({ id, networks, projects, action, mode, until }) =>
    isText(id) &&
    isOneOf(ACCESS_ACTIONS, action) &&
    isOneOf(MODES, mode) &&
    isEnd(until) &&
    (networks === undefined ? areAll(projects, isText) : areAll(networks, isCidr)),
  modes: ({ rule, mode, until }) => isText(rule) && isOneOf(MODES, mode) && isEnd(until),
  overrides: ({ id, kind, what }) => isText(id) && isText(kind) && isText(what),
}

/**
 * A value of `collection` from its JSON. @throws {SyntaxError} {TypeError} when it is not in the form that this release
 * stores
 */
export function readStored(collection: Collection, json: string): unknown {
  const value = JSON.parse(json) as Fields | null
  if (value === null || !isMadeBy(value) || !FORMS[collection](value))
    throw new TypeError('It is not in the form that this release stores.')
  return value
}
