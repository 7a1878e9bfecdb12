/** The settings of the service, and the files that they name. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withFiles } from '../environment.js'
import { Languages } from './languages.js'
import { readAdminKeys, readPublicHost } from './routes/admin-guard.js'
import { readSchemas } from './schemas.js'
import { givenSecrets } from './secret.js'
import { identifiersOf } from './unique-keys.js'

/** Reads them; throws an Error with a sentence about one that cannot be used. */
export function readSettings(env: NodeJS.ProcessEnv) {
  const schemas = readSchemas(env.IDENTITY_SCHEMA || join(packageFolder(), 'config/identity.schema.json'))
  const own = env.IDENTITY_LANGUAGES ? [env.IDENTITY_LANGUAGES] : []
  return {
    adminKeys: readAdminKeys(env.IDENTITY_ADMIN_KEYS),
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
  givenSecrets(env.ENCRYPTION_KEY)
}

/** The folder of our package.json, whether run from sources or from the build. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}
