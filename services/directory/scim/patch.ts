import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonObject, JsonValue } from '../model.js'
import type { Attribute } from './attributes.js'
import { ScimError } from './error.js'
import { type AttributePath, countConditions, type Filter } from './filter.js'
import { attributeValue, countValues, keyOf } from './json.js'
import { matches } from './match.js'
import type { PatchPath, PatchStep } from './patch-path.js'
import { attributeOf } from './schema.js'

/**
 * Applies the steps in order to a copy, so that a failing step leaves nothing behind (RFC 7644, section 3.5.2). The
 * result still has to pass the resource's own checks. Throws 400, or 413 when a step makes an attribute too large.
 */
export function applyPatch(
  resource: JsonObject,
  steps: readonly PatchStep[],
  attributes: readonly Attribute[],
): JsonObject {
  const draft = structuredClone(resource)
  let left: number = limits.patchLooks
  const look = (values: number): void => {
    left -= values
    if (left < 0)
      throw new ScimError(400, 'The operations are too much work; send fewer at a time.', 'tooMany')
  }
  for (const { op, path, value } of steps) {
    update(draft, attributes, path, { op, value, look })
    // Checked after each step: the next one must not work on an attribute that has grown too large.
    look(countValues(attributeValue(draft, path.names[0] ?? '') ?? null))
  }
  return draft
}

interface Action extends Pick<PatchStep, 'op' | 'value'> {
  /** Counts values before they are looked at. Throws 400 tooMany. */
  readonly look: (values: number) => void
}

function update(
  object: JsonObject,
  attributes: readonly Attribute[] | undefined,
  path: PatchPath,
  action: Action,
) {
  const [name = '', ...rest] = path.names
  action.look(Object.keys(object).length)
  const attribute = attributeOf(attributes, name)
  const key = keyOf(object, name) ?? attribute?.name ?? name
  if (rest.length > 0) descend(object, key, attribute, { ...path, names: rest }, action)
  else if (path.filter) updateMatching(object, key, attribute, path.filter, path.sub, action)
  else if (action.op === 'remove') remove(object, key, action)
  else put(object, key, attribute, action)
}

function descend(
  object: JsonObject,
  key: string,
  attribute: Attribute | undefined,
  path: PatchPath,
  action: Action,
) {
  if (object[key] === undefined && action.op === 'remove') return
  const child = object[key] ?? {}
  const targets = Array.isArray(child) ? child : [child]
  if (!targets.every(isJsonObject)) {
    throw new ScimError(400, `${key} has no attribute ${path.names.join('.')}.`, 'invalidPath')
  }
  for (const target of targets) update(target, attribute?.sub, path, action)
  if (Array.isArray(child)) putList(object, key, action.op === 'remove' ? withoutBare(child) : child)
  else if (Object.keys(child).length === 0) delete object[key]
  else object[key] = child
}

function updateMatching(
  object: JsonObject,
  key: string,
  attribute: Attribute | undefined,
  filter: Filter,
  sub: AttributePath,
  action: Action,
) {
  const items = listOf(object[key])
  action.look(countValues(items) * countConditions(filter))
  const fits = items.map(item => matches(item, filter))
  const others = items.filter((_, index) => !fits[index])
  if (action.op === 'remove' && sub.length === 0) return putList(object, key, others)
  if (action.op === 'remove') {
    const matching = items.filter((_, index) => fits[index])
    for (const item of matching) if (isJsonObject(item)) update(item, attribute?.sub, pathTo(sub), action)
    const remaining = new Set([...others, ...withoutBare(matching)])
    const left = items.filter(item => remaining.has(item))
    return putList(object, key, left)
  }
  const change = (item: JsonValue): JsonValue => changeItem(item, attribute, sub, action)
  // Nothing matches: Entra ID expects `emails[type eq "work"].value` to create the missing element.
  const made = others.length === items.length ? [change(seed(filter))] : []
  const result = [...items.map((item, index) => (fits[index] ? change(item) : item)), ...made]
  putList(object, key, onePrimary(result, made.length > 0 ? made : result.filter((_, index) => fits[index])))
}

/** One element of a multi-valued attribute after an add or replace. */
function changeItem(
  item: JsonValue,
  attribute: Attribute | undefined,
  sub: AttributePath,
  action: Action,
): JsonValue {
  const target = isJsonObject(item) ? item : { value: item }
  if (sub.length > 0) {
    update(target, attribute?.sub, pathTo(sub), action)
    return target
  }
  const value = givenBy(action)
  if (!isJsonObject(value)) target.value = value
  else if (action.op === 'replace') return value
  else merge(target, attribute?.sub, value, action)
  return target
}

function remove(object: JsonObject, key: string, { value, look }: Action): void {
  const current = object[key]
  if (value === undefined || value === null || !Array.isArray(current)) {
    delete object[key]
    return
  }
  const named = listOf(value)
  look(current.length + named.length)
  const unwanted = new Set(named.map(identityOf))
  putList(
    object,
    key,
    current.filter(item => !unwanted.has(identityOf(item))),
  )
}

function put(object: JsonObject, key: string, attribute: Attribute | undefined, action: Action): void {
  const current = object[key]
  const given = givenBy(action)
  const value = attribute && !attribute.multi ? single(given, attribute) : given
  if (attribute?.multi || Array.isArray(current)) {
    const old = action.op === 'add' ? listOf(current) : []
    action.look(old.length)
    const known = new Set(old.map(canonical))
    const fresh = listOf(value).filter(item => !known.has(canonical(item)))
    putList(object, key, onePrimary([...old, ...fresh], fresh))
  } else if (isJsonObject(current) && isJsonObject(value)) merge(current, attribute?.sub, value, action)
  else object[key] = value
}

/** A copy of the action's value: it may be written to several places, each of which a later step may change. */
function givenBy({ value = null, look }: Action): JsonValue {
  look(countValues(value))
  return structuredClone(value)
}

/** Older jobs of Entra ID wrap a single value: `[{"$ref": null, "value": "x"}]`. */
function single(value: JsonValue, { kind }: Attribute): JsonValue {
  const item = Array.isArray(value) && value.length === 1 ? (value[0] ?? null) : value
  return item !== value && kind !== 'complex' && isJsonObject(item) ? (item.value ?? null) : item
}

function merge(
  target: JsonObject,
  attributes: readonly Attribute[] | undefined,
  value: JsonObject,
  { op, look }: Action,
): void {
  for (const [name, item] of Object.entries(value)) {
    update(target, attributes, pathTo([name]), { op: item === null ? 'remove' : op, value: item, look })
  }
}

const pathTo = (names: AttributePath): PatchPath => ({ names, filter: undefined, sub: [] })

const listOf = (value: JsonValue | undefined): JsonValue[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]

function putList(object: JsonObject, key: string, items: JsonValue[]): void {
  if (items.length === 0) delete object[key]
  else object[key] = items
}

/** What identifies a value in a list: its `value`, else all of it. */
const identityOf = (item: JsonValue): string => canonical(isJsonObject(item) ? (item.value ?? item) : item)

/** Equal values have equal texts, whatever the order of their attributes. */
const canonical = (value: JsonValue): string =>
  JSON.stringify(value, (_name, each: JsonValue) =>
    isJsonObject(each) ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
  )

/** Drops values of which a removal left nothing but labels, such as `{"type": "home", "primary": false}`. */
const withoutBare = (items: JsonValue[]): JsonValue[] =>
  items.filter(item => !isJsonObject(item) || Object.keys(item).some(name => !labels.has(name.toLowerCase())))
const labels = new Set(['type', 'primary', 'display'])

/** At most one value is primary: a new primary takes it from the others (RFC 7644, section 3.5.2). */
function onePrimary(items: JsonValue[], changed: readonly JsonValue[]): JsonValue[] {
  const primary = changed.findLast(
    item => isJsonObject(item) && String(item.primary).toLowerCase() === 'true',
  )
  if (primary === undefined) return items
  return items.map(item =>
    item !== primary && isJsonObject(item) && item.primary !== undefined ? { ...item, primary: false } : item,
  )
}

/** The element a filter describes: its `eq` conditions joined by `and`. */
function seed(filter: Filter): JsonObject {
  const conditions = filter.kind === 'and' ? filter.filters : [filter]
  const element: JsonObject = {}
  for (const condition of conditions) {
    const [name, ...rest] = condition.kind === 'compare' ? condition.path : []
    if (
      condition.kind !== 'compare' ||
      condition.operator !== 'eq' ||
      name === undefined ||
      rest.length > 0
    ) {
      throw new ScimError(400, 'No value matches the filter of the path.', 'noTarget')
    }
    element[name] = condition.literal
  }
  return element
}
