/** Overrides as JSON: in Redis, and on their way to the workers. */
import { isCidr, isDayOrInstant } from '../../config/formats.js'
import { readNegotiatedLimit } from '../../config/negotiated-limit.js'
import { ACCESS_ACTIONS, MODES } from '../../config/words/words.js'
import type { Log } from '../types.js'
import type { Collection, Contents } from './store.js'

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
  quotas: ({ project, bucket, quota, until }) =>
    isText(project) && isText(bucket) && isEnd(until) && 'quota' in readNegotiatedLimit(quota),
  overrides: ({ id, kind, what }) => isText(id) && isText(kind) && isText(what),
}

/** Values by id, as JSON. */
export type Texts = Readonly<Record<Collection, Readonly<Record<string, string>>>>

export const NO_TEXTS: Texts = { access: {}, modes: {}, quotas: {}, overrides: {} }

export function textsOf(contents: Contents): Texts {
  const of = (values: ReadonlyMap<string, object>) =>
    Object.fromEntries([...values].map(([id, value]) => [id, JSON.stringify(value)]))
  const { access, modes, quotas, overrides } = contents
  return { access: of(access), modes: of(modes), quotas: of(quotas), overrides: of(overrides) }
}

/**
 * The contents that the texts describe. What has not changed since `before` is the same object as there. What cannot be
 * read is left out, and an error is logged: another release may store another form, which must affect no request.
 */
export function readTexts(texts: Texts, before: { texts: Texts; contents: Contents }, log: Log): Contents {
  const of = (collection: Collection): Map<string, never> => {
    const values = new Map<string, never>()
    // In one order in all gateways, whichever of them made a change.
    const inOrder = Object.entries(texts[collection]).sort(([one], [other]) => (one < other ? -1 : 1))
    for (const [id, text] of inOrder) {
      const isSame = before.texts[collection][id] === text
      const known = isSame ? before.contents[collection].get(id) : undefined
      try {
        values.set(id, (known ?? readStored(collection, text)) as never)
      } catch (error) {
        log.error({ err: error, collection, id }, 'what Redis keeps for the admin port cannot be read')
      }
    }
    return values
  }
  return { access: of('access'), modes: of('modes'), quotas: of('quotas'), overrides: of('overrides') }
}

/**
 * A value of `collection` from its JSON. @throws {SyntaxError} {TypeError} when it is not in the form that this release
 * stores
 */
function readStored(collection: Collection, json: string): unknown {
  const value = JSON.parse(json) as Fields | null
  if (value === null || !isMadeBy(value) || !FORMS[collection](value))
    throw new TypeError('It is not in the form that this release stores.')
  return value
}
