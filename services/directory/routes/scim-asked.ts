import type { JsonObject, JsonValue } from '../model.js'
import { ScimError } from '../scim/error.js'
import { attributeValue, isObject } from '../scim/json.js'
import type { ListParameters } from '../scim/question.js'
import { query, queryInteger, type Request } from './http.js'

/** The list parameters in the query of a GET (RFC 7644, section 3.4.2). Throws HttpError 400. */
export function readAsked(request: Request): ListParameters {
  return {
    filter: query(request, 'filter'),
    sortBy: query(request, 'sortBy'),
    sortOrder: query(request, 'sortOrder'),
    startIndex: queryInteger(request, 'startIndex'),
    count: queryInteger(request, 'count'),
    attributes: namesOf(query(request, 'attributes')),
    excludedAttributes: namesOf(query(request, 'excludedAttributes')),
  }
}

/** The list parameters in the body of a `.search` (RFC 7644, section 3.4.3). Throws ScimError 400. */
export function readSearch(body: unknown): ListParameters {
  if (!isObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  return {
    filter: textOf(body, 'filter'),
    sortBy: textOf(body, 'sortBy'),
    sortOrder: textOf(body, 'sortOrder'),
    startIndex: integerOf(body, 'startIndex'),
    count: integerOf(body, 'count'),
    attributes: nameListOf(body, 'attributes'),
    excludedAttributes: nameListOf(body, 'excludedAttributes'),
  }
}

/** Names separated by commas. */
const namesOf = (text: string | undefined): string[] | undefined =>
  text
    ?.split(',')
    .map(name => name.trim())
    .filter(name => name !== '')

const read = <T extends JsonValue>(
  body: JsonObject,
  name: string,
  what: string,
  fits: (value: JsonValue) => value is T,
): T | undefined => {
  const value = attributeValue(body, name)
  if (value === undefined || value === null) return undefined
  if (!fits(value)) throw new ScimError(400, `${name} must be ${what}.`, 'invalidValue')
  return value
}
const isText = (value: JsonValue): value is string => typeof value === 'string'
const isInteger = (value: JsonValue): value is number => Number.isSafeInteger(value)
const isNames = (value: JsonValue): value is string[] => Array.isArray(value) && value.every(isText)

const textOf = (body: JsonObject, name: string) => read(body, name, 'a string', isText)
const integerOf = (body: JsonObject, name: string) => read(body, name, 'a whole number', isInteger)
const nameListOf = (body: JsonObject, name: string) => read(body, name, 'a list of attribute names', isNames)
