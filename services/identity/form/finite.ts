/**
 * Refuses schemas that no form can serve: those that can never be filled in, and those whose form would be too large.
 */
import type { Field } from './field.js'
import { buildNodes, MAX_NODES, type Node } from './nodes.js'
import { SchemaError } from './schema-document.js'

/** Refuses `traits` whose form would be too large, or whose required fields form a cycle. Throws SchemaError. */
export function refuseEndless(root: Field, traits: Field): void {
  refuseRequiredCircles(traits)
  const nodes = buildNodes({ root }, { texts: [], inner: new Map() }, [])
  if (count(nodes) > MAX_NODES) {
    throw new SchemaError(
      `the form would have more than ${MAX_NODES} fields; declare fewer properties, a smaller minItems, or fewer definitions that refer to each other`,
    )
  }
}

/** An object that requires itself at a deeper level can never be filled in. */
function refuseRequiredCircles(traits: Field): void {
  const finished = new Set<Field>()
  const open = new Set<Field>()
  function follow(field: Field, path: string): void {
    if (finished.has(field)) return
    if (open.has(field)) {
      throw new SchemaError(`${path} is required inside itself, endlessly; make it optional somewhere`)
    }
    open.add(field)
    for (const [name, child] of field.children) {
      if (field.required.has(name) && !child.nullable) follow(child, `${path}.${name}`)
    }
    open.delete(field)
    finished.add(field)
  }
  for (const [field, path] of everyField(traits, 'traits')) follow(field, path)
}

/** Each field once, with one path that leads to it. */
function everyField(root: Field, path: string): ReadonlyMap<Field, string> {
  const found = new Map([[root, path]])
  const add = (field: Field | undefined, at: string) => {
    if (field && !found.has(field)) found.set(field, at)
  }
  // The loop also visits the entries that it adds.
  for (const [field, at] of found) {
    for (const [name, child] of field.children) add(child, `${at}.${name}`)
    for (const item of [...field.tuple, field.items]) add(item, `${at}[]`)
  }
  return found
}

function count(nodes: readonly Node[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'input' ? 0 : count(node.nodes)), 0)
}
