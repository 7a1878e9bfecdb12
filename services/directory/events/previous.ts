import { isDeepStrictEqual } from 'node:util'

type Attributes = Readonly<Record<string, unknown>>

/**
 * What an update changed, with the previous values: the fields of the view, and the attributes of `raw` that
 * differ. An attribute that did not exist is null.
 */
export function previousAttributes(before: object, after: object): Attributes {
  const { raw: oldRaw, ...old } = before as Attributes
  const { raw: newRaw, ...now } = after as Attributes
  const raw = differing(oldRaw as Attributes, newRaw as Attributes)
  return { ...differing(old, now), ...(Object.keys(raw).length > 0 ? { raw } : {}) }
}

function differing(before: Attributes, after: Attributes): Attributes {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const changed = [...names].filter(name => !isDeepStrictEqual(before[name], after[name]))
  return Object.fromEntries(changed.map(name => [name, before[name] ?? null]))
}
