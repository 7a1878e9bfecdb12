/** Which values of the traits identify a person (`x-identifier`). */
import { type FormField, MAX_SEGMENTS } from './field.js'
import { SchemaError } from './schema-document.js'

/** Paths below `traits` whose values are unique within a project. Throws SchemaError. */
export function findIdentifiers(traits: FormField): string[][] {
  const found: string[][] = []
  const walk = (field: FormField, path: string[], open: ReadonlySet<FormField>): void => {
    if (open.has(field) || open.size >= MAX_SEGMENTS) return
    if (field.identifier) {
      if (!field.scalars.has('string'))
        throw new SchemaError(`${path.join('.')}: x-identifier must stand on a string`)
      found.push(path)
    }
    for (const item of [...field.tuple, field.items]) {
      if (item?.identifier)
        throw new SchemaError(`${path.join('.')}: x-identifier cannot stand inside an array`)
    }
    for (const [name, child] of field.children) walk(child, [...path, name], new Set(open).add(field))
  }
  walk(traits, [], new Set())
  return found
}
