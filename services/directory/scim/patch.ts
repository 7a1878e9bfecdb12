import { isDeepStrictEqual } from 'node:util'
import type { Json, JsonObject } from '../model.js'
import { ScimError } from './error.js'
import type { AttributePath, Filter } from './filter.js'
import { isObject, keyOf } from './json.js'
import { matches } from './match.js'
import type { PatchPath, PatchStep } from './patch-path.js'
import { type Attribute, attributeOf } from './schema.js'

/**
 * Applies the steps in order to a copy, so a failing step leaves nothing behind (RFC 7644, section 3.5.2). The result
 * still has to pass the resource's own checks.
 */
export function applyPatch(
  resource: JsonObject,
  steps: readonly PatchStep[],
  attributes: readonly Attribute[],
): JsonObject {
  const draft = structuredClone(resource)
  for (const step of steps) update(draft, attributes, step.path, step)
  return draft
}

type Action = Pick<PatchStep, 'op' | 'value'>
type Giving = Exclude<PatchStep['op'], 'remove'>

function update(
  object: JsonObject,
  attributes: readonly Attribute[] | undefined,
  path: PatchPath,
  action: Action,
) {
  const [name = '', ...rest] = path.names
  const attribute = attributeOf(attributes, name)
  const key = keyOf(object, name) ?? attribute?.name ?? name
  if (rest.length > 0) descend(object, key, attribute, { ...path, names: rest }, action)
  else if (path.filter) updateMatching(object, key, attribute, path.filter, path.sub, action)
  else if (action.op === 'remove') remove(object, key, action.value)
  else put(object, key, attribute, action.op, action.value ?? null)
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
  if (!targets.every(isObject)) {
    throw new ScimError(400, `${key} has no attribute ${path.names.join('.')}.`, 'invalidPath')
  }
  for (const target of targets) update(target, attribute?.sub, path, action)
  if (targets.every(target => Object.keys(target).length === 0)) delete object[key]
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
  const matching = items.filter(item => matches(item, filter))
  if (action.op === 'remove' && sub.length === 0) {
    return putList(
      object,
      key,
      items.filter(item => !matching.includes(item)),
    )
  }
  if (action.op === 'remove') {
    for (const item of matching) if (isObject(item)) update(item, attribute?.sub, pathTo(sub), action)
    return
  }
  // Nothing fits: Entra ID counts on `emails[type eq "work"].value` making the missing element.
  const made = matching.length === 0 ? [seed(filter)] : []
  const { op, value = null } = action
  const changed = [...matching, ...made].map(item => changeItem(item, attribute, sub, op, value))
  const kept = items.map(item => (matching.includes(item) ? (changed[matching.indexOf(item)] ?? item) : item))
  const result = made.length > 0 ? [...kept, ...changed] : kept
  putList(object, key, onePrimary(result, changed))
}

/** One element of a multi-valued attribute after an add or replace. */
function changeItem(
  item: Json,
  attribute: Attribute | undefined,
  sub: AttributePath,
  op: Giving,
  value: Json,
): Json {
  const target = isObject(item) ? item : { value: item }
  if (sub.length > 0) update(target, attribute?.sub, pathTo(sub), { op, value })
  else if (!isObject(value)) target.value = value
  else if (op === 'replace') return value
  else merge(target, attribute?.sub, value, op)
  return target
}

function remove(object: JsonObject, key: string, value: Json | undefined): void {
  const current = object[key]
  if (value === undefined || value === null || !Array.isArray(current)) {
    delete object[key]
    return
  }
  const unwanted = listOf(value)
  putList(
    object,
    key,
    current.filter(item => !unwanted.some(other => sameItem(item, other))),
  )
}

function put(object: JsonObject, key: string, attribute: Attribute | undefined, op: Giving, value: Json) {
  const current = object[key]
  if (attribute?.multi || Array.isArray(current)) {
    const old = op === 'add' ? listOf(current) : []
    const fresh = listOf(value).filter(item => !old.some(other => isDeepStrictEqual(item, other)))
    putList(object, key, onePrimary([...old, ...fresh], fresh))
  } else if (isObject(current) && isObject(value)) merge(current, attribute?.sub, value, op)
  else object[key] = value
}

function merge(
  target: JsonObject,
  attributes: readonly Attribute[] | undefined,
  value: JsonObject,
  op: Giving,
) {
  for (const [name, item] of Object.entries(value)) {
    update(target, attributes, pathTo([name]), { op: item === null ? 'remove' : op, value: item })
  }
}

const pathTo = (names: AttributePath): PatchPath => ({ names, filter: undefined, sub: [] })

const listOf = (value: Json | undefined): Json[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]

function putList(object: JsonObject, key: string, items: Json[]): void {
  if (items.length === 0) delete object[key]
  else object[key] = items
}

function sameItem(item: Json, other: Json): boolean {
  const [a, b] = [item, other].map(each => (isObject(each) && each.value !== undefined ? each.value : each))
  return isDeepStrictEqual(a, b)
}

/** At most one value is primary: a new primary takes it from the others (RFC 7644, section 3.5.2). */
function onePrimary(items: Json[], changed: readonly Json[]): Json[] {
  const primary = changed.findLast(item => isObject(item) && String(item.primary).toLowerCase() === 'true')
  if (primary === undefined) return items
  return items.map(item =>
    item !== primary && isObject(item) && item.primary !== undefined ? { ...item, primary: false } : item,
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
      throw new ScimError(400, 'No value fits the filter of the path.', 'noTarget')
    }
    element[name] = condition.literal
  }
  return element
}
