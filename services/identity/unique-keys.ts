/** How the store finds the values that must be unique: per project and trait, as folded by login-names.ts. */
import { createHash } from 'node:crypto'
import { foldLoginName, foldVersion } from '../login-names.js'
import { isJsonObject, type JsonObject, type JsonValue, own } from './form/json.js'
import type { Schemas } from './schemas.js'
import type { Identifiers } from './store/contract.js'

/** The identifier traits (`x-identifier`) of every schema; each project has its own. */
export function identifiersOf(schemas: Schemas): Identifiers {
  const traitsOf = [...schemas.chosen].map(([project, schema]) => {
    return [project, schema.identifiers.map(path => path.join('.')).sort()] as const
  })
  return {
    traits: [...new Set(traitsOf.flatMap(([, traits]) => traits))],
    revision: createHash('sha256')
      .update(JSON.stringify([foldVersion, traitsOf.sort()]))
      .digest('hex'),
    keysOf(project, traitsJson) {
      const traits = JSON.parse(traitsJson) as JsonObject
      const keys = new Map<string, string>()
      for (const path of schemas.of(project).identifiers) {
        const value = path.reduce<JsonValue | undefined>(
          (holder, name) => (isJsonObject(holder) ? own(holder, name) : undefined),
          traits,
        )
        if (typeof value === 'string') keys.set(path.join('.'), keyOf(project, path.join('.'), value))
      }
      return keys
    },
  }
}

function keyOf(project: string, trait: string, value: string): string {
  return createHash('sha256')
    .update(JSON.stringify([project, trait, foldLoginName(value)]))
    .digest('hex')
}
