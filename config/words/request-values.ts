/** What fields and redirects of a route may say about a request, as `${project.id}`. */

export const REQUEST_VALUES = [
  'project.id',
  'project.plan',
  'project.environment',
  'client.address',
  'host',
  'path',
  'request.id',
] as const
export type RequestValue = (typeof REQUEST_VALUES)[number]

export function isRequestValue(name: string): name is RequestValue {
  return (REQUEST_VALUES as readonly string[]).includes(name)
}

/** True for a place in gateway.yaml whose text may hold such values; `path` is its keys from the root. */
export function mayHoldValues(path: readonly (string | number)[]): boolean {
  const [list, , key, part, change] = path
  if (list !== 'routes') return false
  if (key === 'redirect') return part === 'to' && path.length === 4
  return key === 'headers' && (change === 'set' || change === 'add') && path.length === 6
}

const VALUE = /\$\{([a-z.]+)\}/g

/** A text in its parts: every second one, from the second on, is the name of a value. */
export function partsOf(text: string): (string | RequestValue)[] {
  const parts: string[] = ['']
  let from = 0
  for (const { 0: whole, 1: name = '', index } of text.matchAll(VALUE)) {
    if (!isRequestValue(name)) continue
    parts[parts.length - 1] += text.slice(from, index)
    parts.push(name, '')
    from = index + whole.length
  }
  parts[parts.length - 1] += text.slice(from)
  return parts
}
