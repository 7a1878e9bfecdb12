/**
 * Branches of a oneOf that a fixed string distinguishes, such as `kind: card` and `kind: iban`. Validated one by one,
 * they would report the fields of every branch that was not chosen (docs/forms.md).
 */
import { isJsonObject, type JsonObject, type JsonValue, own } from '../../json.js'
import { list, type ResolveSchema } from './fragments.js'

/** Keywords that do not constrain the value: a branch with only these is nothing but a reference. */
const WORDS = new Set(['$ref', 'title', 'description'])

/**
 * Marks in `schema` which property distinguishes its branches, so that the validator checks only the chosen one. No
 * value becomes valid by this: each branch requires the property, and no two share a string for it.
 */
export function markDiscriminator(schema: JsonObject, resolve: ResolveSchema): void {
  // Draft-07 has no such keyword; OpenAPI's may contradict the branches.
  delete schema.discriminator
  const branches = list(schema, 'oneOf').map(branch => behindReference(branch, resolve))
  const [first] = branches
  if (branches.length < 2 || !first) return
  const isObject = own(schema, 'type') === 'object'
  if (!isObject && !branches.every(branch => branch && own(branch, 'type') === 'object')) return
  if (!isObject && Object.hasOwn(schema, 'type')) return
  const propertyName = list(first, 'required').find(name => tellsApart(String(name), branches))
  if (propertyName === undefined) return
  Object.assign(schema, { type: 'object', discriminator: { propertyName } })
}

function behindReference(branch: JsonValue, resolve: ResolveSchema): JsonObject | undefined {
  if (!isJsonObject(branch)) return undefined
  const reference = own(branch, '$ref')
  const isOnlyThat = typeof reference === 'string' && Object.keys(branch).every(key => WORDS.has(key))
  const target = isOnlyThat ? resolve(reference) : branch
  return isJsonObject(target) ? target : undefined
}

/** True when every branch requires `name` to be one of some strings, and each string leads to one branch. */
function tellsApart(name: string, branches: readonly (JsonObject | undefined)[]): boolean {
  if (name in Object.prototype) return false
  const texts = branches.flatMap(branch => {
    const properties = branch && own(branch, 'properties')
    const property = isJsonObject(properties) ? own(properties, name) : undefined
    if (!branch || !isJsonObject(property) || !list(branch, 'required').includes(name)) return [undefined]
    const fixed = own(property, 'const')
    const values = fixed === undefined ? list(property, 'enum') : [fixed]
    return values.length > 0 ? values : [undefined]
  })
  return (
    texts.every(text => typeof text === 'string' && text !== '' && !(text in Object.prototype)) &&
    new Set(texts).size === texts.length
  )
}
