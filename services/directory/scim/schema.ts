import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonObject, JsonValue } from '../model.js'
import {
  type Attribute,
  commonAttributes,
  coreGroupAttributes,
  coreUserAttributes,
  enterpriseAttributes,
  enterpriseUrn,
} from './attributes.js'
import { ScimError } from './error.js'
import { clean } from './json.js'

const extension: Attribute = {
  name: enterpriseUrn,
  kind: 'complex',
  description: 'Enterprise User',
  sub: enterpriseAttributes,
}

/**
 * All attributes that a user may send; the enterprise extension is under its URN. Read-only ones (`groups`) are stored
 * in `raw` as received and otherwise ignored.
 */
export const userAttributes: readonly Attribute[] = [
  ...commonAttributes,
  ...coreUserAttributes.filter(attribute => attribute.mutability !== 'readOnly'),
  extension,
]

/** All attributes that a group may have. `members` are stored apart from the group. */
export const groupAttributes: readonly Attribute[] = [...commonAttributes, ...coreGroupAttributes]

/** The attribute with that name, in any letter case. */
export function attributeOf(
  attributes: readonly Attribute[] | undefined,
  name: string,
): Attribute | undefined {
  if (!attributes) return undefined
  const known = byName.get(attributes) ?? new Map(attributes.map(each => [each.name.toLowerCase(), each]))
  byName.set(attributes, known)
  return known.get(name.toLowerCase())
}
const byName = new WeakMap<readonly Attribute[], ReadonlyMap<string, Attribute>>()

/**
 * The resource with known attribute names in the schema's letter case and known values in the schema's type: boolean
 * strings ("True") become booleans, a single value of a multi-valued attribute becomes a list, and a string in place
 * of a complex value that has a `value` (an e-mail, a manager) becomes that `value`. Attributes the schema does not
 * know stay as they are. Throws invalidValue.
 */
function conform(resource: JsonObject, attributes: readonly Attribute[], path = ''): JsonObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(resource)) {
    const attribute = attributeOf(attributes, key)
    const name = attribute?.name ?? key
    if (Object.hasOwn(result, name)) throw invalid(path + name, 'is given twice in different letter case')
    result[name] = attribute ? conformValue(value, attribute, path + name) : value
  }
  return result
}

function conformValue(value: JsonValue, attribute: Attribute, path: string): JsonValue {
  if (!attribute.multi) return conformSingle(value, attribute, path)
  const items = Array.isArray(value) ? value : [value]
  return items.map((item, index) => conformSingle(item, attribute, `${path}[${index}]`))
}

function conformSingle(value: JsonValue, attribute: Attribute, path: string): JsonValue {
  switch (attribute.kind) {
    case 'string':
    case 'reference':
    case 'binary':
      if (typeof value !== 'string') throw invalid(path, 'must be a string')
      return value
    case 'boolean':
      if (typeof value === 'boolean') return value
      if (typeof value === 'string' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true'
      throw invalid(path, 'must be true or false')
    case 'complex': {
      const object = typeof value === 'string' && attributeOf(attribute.sub, 'value') ? { value } : value
      if (!isJsonObject(object)) throw invalid(path, 'must be an object')
      return conform(object, attribute.sub ?? [], `${path}.`)
    }
  }
}

const invalid = (path: string, problem: string): ScimError =>
  new ScimError(400, `${path} ${problem}.`, 'invalidValue')

/**
 * The checks that POST, PUT and a finished PATCH share for users and groups. Throws 400 invalidSyntax or invalidValue.
 */
export function readResource(body: unknown, urn: string, attributes: readonly Attribute[]): JsonObject {
  if (!isJsonObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  const raw = conform(clean(body) as JsonObject, attributes)
  return { schemas: [urn], ...raw }
}

/** Throws 400 invalidValue unless the attribute is a well-formed string, neither blank nor too long. */
export function requireText(raw: JsonObject, name: string): void {
  const value = raw[name]
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ScimError(400, `${name} is required and must not be blank.`, 'invalidValue')
  }
  if (value.length > limits.nameLength) {
    throw new ScimError(400, `${name} is longer than ${limits.nameLength} characters.`, 'invalidValue')
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new ScimError(400, `${name} holds half a character (a lone surrogate).`, 'invalidValue')
  }
}
