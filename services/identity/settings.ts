/** The settings of the service, and the files that they name. */

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withFiles } from '../environment.js'
import { isJsonObject, type JsonObject, type JsonValue, own } from '../json.js'
import { readEncryptionKeys, readKeys } from '../keys.js'
import { foldLoginName, foldVersion } from '../login-names.js'
import { Languages } from './languages.js'
import { readPublicHost } from './routes/admin-guard.js'
import type { Schemas } from './schema/files.js'
import { readSchemas } from './schema/files.js'
import type { Identifiers } from './store/contract.js'

/** Reads them; throws an Error with a sentence about one that cannot be used. */
export function readSettings(env: NodeJS.ProcessEnv) {
  const schemas = readSchemas(env.IDENTITY_SCHEMA || join(packageFolder(), 'config/identity.schema.json'))
  const own = env.IDENTITY_LANGUAGES ? [env.IDENTITY_LANGUAGES] : []
  return {
    adminKeys: readKeys('IDENTITY_ADMIN_KEYS', env.IDENTITY_ADMIN_KEYS),
    publicHost: readPublicHost(env.BASE_URL),
    schemas,
    identifiers: identifiersOf(schemas),
    languages: new Languages([join(packageFolder(), 'config/languages'), ...own]),
  }
}

/** Throws as a start with these variables would; opens no data folder and no database. */
export function checkSettings(given: NodeJS.ProcessEnv): void {
  const env = withFiles(given)
  readSettings(env)
  readEncryptionKeys(env.ENCRYPTION_KEY)
}

/** The folder of our package.json, whether run from sources or from the build. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}

/** The identifier traits (`x-identifier`) of every schema; each project has its own. */
function identifiersOf(schemas: Schemas): Identifiers {
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
