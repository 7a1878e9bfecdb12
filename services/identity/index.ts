/** The embedded identity service: typed registration by a schema, and identities for administrators. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildApp, type Log } from './app.js'
import { type CompiledSchema, compileSchema } from './form/schema.js'
import { SchemaError } from './form/schema-document.js'
import { Identities, identifiersOf } from './identities.js'
import { adminRoutes } from './routes/admin.js'
import { registrationRoutes } from './routes/registration.js'
import { sessionRoutes } from './routes/sessions.js'
import { openMongoStore } from './store/mongodb.js'
import { openSqliteStore } from './store/sqlite.js'

export type { Log } from './app.js'
export type { FieldError } from './form/errors.js'
export { type ParseResult, parseForm, type Submission } from './form/parse.js'
export { type CompiledSchema, compileSchema } from './form/schema.js'
export { SchemaError } from './form/schema-document.js'

/** A running service; `notes` are lines for the person who started it. */
export interface Running {
  readonly url: string
  readonly notes: string[]
  close(): Promise<void>
}

/**
 * Starts the service on a free port of 127.0.0.1. Reads MONGODB_URL (empty: SQLite in DATA_DIR, default `./data`)
 * and IDENTITY_SCHEMA from `env`. Throws an Error with a sentence when the schema or the store cannot be used.
 */
export async function start(options: {
  env: NodeJS.ProcessEnv
  log: Log
  schemaFile?: string
}): Promise<Running> {
  const { env, log } = options
  const schema = readSchema(
    options.schemaFile ?? (env.IDENTITY_SCHEMA || join(packageFolder(), 'config/identity.schema.json')),
  )
  const identifiers = identifiersOf(schema)
  const file = resolve(env.DATA_DIR || 'data', 'identity.sqlite')
  const store = env.MONGODB_URL
    ? await openMongoStore(env.MONGODB_URL, identifiers)
    : await openSqliteStore(file, identifiers)
  const identities = new Identities(schema, store, Date.now)
  const app = buildApp(
    new Map([...registrationRoutes(identities), ...adminRoutes(identities), ...sessionRoutes()]),
    log,
  )
  const close = async () => {
    await app.close()
    await store.close()
  }
  try {
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    return { url, notes: [`Identities are kept in ${env.MONGODB_URL ? 'MongoDB' : file}`], close }
  } catch (error) {
    await close()
    throw error
  }
}

function readSchema(file: string): CompiledSchema {
  try {
    return compileSchema(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if (error instanceof SchemaError || error instanceof SyntaxError) {
      throw new Error(`identity schema ${file}: ${error.message}`)
    }
    throw new Error(
      `identity schema ${file} cannot be read (${(error as Error).message}); set IDENTITY_SCHEMA`,
    )
  }
}

/** The folder of our package.json, from sources and from the build alike. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}
