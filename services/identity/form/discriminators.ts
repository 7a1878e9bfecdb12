/**
 * Branches of a oneOf that a fixed text tells apart, such as `kind: card` and `kind: iban`. Judged one by one they would
 * complain about the fields of every branch nobody chose (docs/forms.md).
 */
import { isJsonObject, type JsonObject, type JsonValue, own } from './json.js'
import { list, type Resolve } from './kinds.js'

/** Keywords that say nothing of the value, beside which a reference is still all there is. */
const WORDS = new Set(['$ref', 'title', 'description'])

/**
 * Notes in `schema` which property tells its branches apart, for the validator to judge only the one that was chosen. No
 * value is valid now that was not before: each branch requires the property, and no two share a text for it.
 */
export function markDiscriminator(schema: JsonObject, resolve: Resolve): void {
  // Draft-07 knows no such keyword; OpenAPI's may say what the branches do not.
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

function behindReference(branch: JsonValue, resolve: Resolve): JsonObject | undefined {
  if (!isJsonObject(branch)) return undefined
  const reference = own(branch, '$ref')
  const isOnlyThat = typeof reference === 'string' && Object.keys(branch).every(key => WORDS.has(key))
  const target = isOnlyThat ? resolve(reference) : branch
  return isJsonObject(target) ? target : undefined
}

/** True when every branch requires `name` to be one of some texts, and each text leads to one branch. */
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
