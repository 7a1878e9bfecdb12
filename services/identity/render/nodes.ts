/**
 * The form as a tree of nodes, from the same table in which the parser looks up names. HTML is rendered from it, and
 * clients that render the form themselves receive it.
 */

import type { FieldError } from '../decode/messages.js'
import { type FormField, isFreeObject, itemField, MAX_ITEMS, MAX_SEGMENTS } from '../schema/field.js'
import type { CompiledSchema } from '../schema/schema.js'
import { type Described, hintOf, type Input, inputNode } from './inputs.js'
import { type Sent, traitsField } from './sent.js'

/** An object's fields, or an array's rows; blank rows are left out when the form is read. */
export interface NodeGroup extends Described {
  readonly type: 'group' | 'list'
  readonly nodes: readonly FormNode[]
}
export type FormNode = NodeGroup | Input

/** Fewest rows of a list of plain values; one blank row always follows the last filled one. */
const MIN_ROWS = 3

/** Most nodes of a form. A schema that needs more is refused when it is loaded, and no form can send as many names. */
export const MAX_NODES = 5000

interface Place {
  readonly name: string
  readonly label: string
  readonly sent: Sent | undefined
  readonly required: boolean
  /** True inside a row that has not been filled in yet. */
  readonly unused: boolean
  /** True inside an unused repetition of a recursive schema, of which one is offered. */
  readonly repeated: boolean
  readonly around: ReadonlySet<FormField>
}

/** The nodes of `traits`, filled with what was sent and marked with `errors`. */
export function buildNodes(
  schema: Pick<CompiledSchema, 'root'>,
  sent: Sent,
  errors: readonly FieldError[],
): readonly FormNode[] {
  const messages = new Map<string, string[]>()
  let shown = 0
  for (const { path, message } of errors) messages.set(path, [...(messages.get(path) ?? []), message])

  function children(field: FormField, place: Place): FormNode[] {
    return [...field.children].flatMap(([key, child]) =>
      node(child, {
        ...place,
        name: `${place.name}.${key}`,
        label: child.display.title ?? words(key),
        sent: place.sent?.inner.get(key),
        required: place.required && field.required.has(key),
        around: new Set(place.around).add(field),
      }),
    )
  }

  function rows(field: FormField, place: Place): FormNode[] {
    const filled = 1 + Math.max(-1, ...[...(place.sent?.inner.keys() ?? [])].map(Number))
    const fewest = Math.min(field.display.minItems ?? 0, MAX_ITEMS)
    const plain = itemField(field, filled)?.kind === 'scalar' ? MIN_ROWS : 1
    const most = Math.min(field.display.maxItems ?? Infinity, field.items ? Infinity : field.tuple.length)
    const count = Math.max(filled, Math.min(Math.max(filled + 1, plain, field.tuple.length, fewest), most))
    return Array.from({ length: count }, (_, row) => {
      const item = itemField(field, row)
      if (!item) return []
      return node(item, {
        ...place,
        name: `${place.name}.${row}`,
        label: rowLabel(field, item, row, place.label),
        sent: place.sent?.inner.get(row),
        required: place.required && row < fewest,
        unused: place.unused || row >= filled,
        around: new Set(place.around).add(field),
      })
    }).flat()
  }

  /** One node, or none where a recursive schema would continue without end. */
  function node(field: FormField, at: Place): FormNode[] {
    const again = at.around.has(field) && !at.sent
    if (again && at.repeated) return []
    // Deeper names would not be read.
    if (shown > MAX_NODES || at.around.size >= MAX_SEGMENTS) return []
    shown++
    const place = again ? { ...at, unused: true, repeated: true } : at
    const hint = hintOf(field)
    const described: Described = {
      name: place.name,
      label: place.label,
      ...(hint === undefined ? {} : { description: hint }),
      messages: messages.get(place.name) ?? [],
    }
    if (field.kind === 'array') return [{ type: 'list', ...described, nodes: rows(field, place) }]
    if (field.kind === 'object' && !isFreeObject(field)) {
      return [{ type: 'group', ...described, nodes: children(field, place) }]
    }
    // A checkbox cannot stay blank, so an unused row has a select instead.
    const optional = field.nullable || place.unused
    return [inputNode(field, described, place.sent?.texts ?? [], place.required, optional)]
  }

  const state = { required: true, unused: false, repeated: false, around: new Set<FormField>() }
  return children(traitsField(schema.root), { name: 'traits', label: '', sent, ...state })
}

export function saidNodes(nodes: readonly FormNode[], say: (text: string) => string): FormNode[] {
  return nodes.map(node => {
    const said = {
      label: say(node.label),
      ...(node.description === undefined ? {} : { description: say(node.description) }),
      messages: node.messages.map(say),
    }
    if (node.type !== 'input') return { ...node, ...said, nodes: saidNodes(node.nodes, say) }
    const options = node.options?.map(({ value, label }) => ({ value, label: say(label) }))
    return { ...node, ...said, ...(options && { options }) }
  })
}

/** A tuple position with a title needs no number. */
function rowLabel(array: FormField, item: FormField, row: number, label: string): string {
  const { title } = item.display
  return title !== undefined && row < array.tuple.length ? title : `${title ?? label} ${row + 1}`
}

/** A property's name as words, for a schema without titles. */
function words(name: string): string {
  const spaced = name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .trim()
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}

export function countNodes(nodes: readonly FormNode[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'input' ? 0 : countNodes(node.nodes)), 0)
}
