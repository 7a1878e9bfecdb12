/**
 * Refuses schemas that no form can serve: those that can never be filled in, and those whose form would be too large.
 */

import { buildNodes, type FormNode, MAX_NODES } from '../render/nodes.js'
import { SchemaError } from './document.js'
import type { FormField } from './field.js'

/** Refuses `traits` whose form would be too large, or whose required fields form a cycle. Throws SchemaError. */
export function refuseEndless(root: FormField, traits: FormField): void {
  refuseRequiredCircles(traits)
  const nodes = buildNodes({ root }, { texts: [], inner: new Map() }, [])
  if (count(nodes) > MAX_NODES) {
    throw new SchemaError(
      `the form would have more than ${MAX_NODES} fields; declare fewer properties, a smaller minItems, or fewer definitions that refer to each other`,
    )
  }
}

/** An object that requires itself at a deeper level can never be filled in. */
function refuseRequiredCircles(traits: FormField): void {
  const finished = new Set<FormField>()
  const open = new Set<FormField>()
  function follow(field: FormField, path: string): void {
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
function everyField(root: FormField, path: string): ReadonlyMap<FormField, string> {
  const found = new Map([[root, path]])
  const add = (field: FormField | undefined, at: string) => {
    if (field && !found.has(field)) found.set(field, at)
  }
  // The loop also visits the entries that it adds.
  for (const [field, at] of found) {
    for (const [name, child] of field.children) add(child, `${at}.${name}`)
    for (const item of [...field.tuple, field.items]) add(item, `${at}[]`)
  }
  return found
}

function count(nodes: readonly FormNode[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'input' ? 0 : count(node.nodes)), 0)
}
