/** The embedded identity service: typed registration by a schema, settings, and identities for administrators. */
import { resolve } from 'node:path'
import { withFiles } from '../environment.js'
import { HttpError } from '../http/errors.js'
import { type CountWrongKey, countWrongKeys } from '../http/wrong-keys.js'
import type { ServiceLog } from '../log.js'
import { loadAdapter } from '../storage/driver.js'
import { createStoreHealth } from '../storage/health.js'
import { buildApp } from './app.js'
import type { IdentityRoutes } from './http.js'
import { Identities } from './identities.js'
import { adminRoutes } from './routes/admin.js'
import { guardAdmin } from './routes/admin-guard.js'
import { registrationRoutes } from './routes/registration.js'
import { settingsRoutes } from './routes/settings.js'
import { Signer, serviceSecrets } from './secret.js'
import { readSettings } from './settings.js'
import { type Identifiers, IdentifierTaken, type IdentityStore } from './store/contract.js'

/** A running service; `notes` are lines for the person who started it. */
export interface Running {
  readonly url: string
  readonly notes: string[]
  /** The series `identity_store_*` in the Prometheus text format. */
  metrics(): Promise<string>
  /** A sentence while the database is failing. */
  trouble(): string | undefined
  close(): Promise<void>
}

export interface IdentityStartOptions {
  /**
   * MONGODB_URL (empty: SQLite in DATA_DIR), DATA_DIR (default `./data`), IDENTITY_SCHEMA (a file or a folder),
   * IDENTITY_LANGUAGES (a folder), IDENTITY_ADMIN_KEYS (comma-separated; empty: administration from this machine
   * only), BASE_URL (its host is another name for administration without a key), ENCRYPTION_KEY; each may be in a file
   * that `NAME_FILE` names.
   */
  readonly env: NodeJS.ProcessEnv
  readonly log: ServiceLog
  /** Counts wrong keys; by default within this process. */
  readonly wrongKey?: CountWrongKey<'identity'>
  /**
   * Of the gateway in front, which sends it in `x-sluice-secret`: only requests with it are answered, and what they say
   * in `x-sluice-*` fields is believed. Without it everybody is answered, and those fields are ignored.
   */
  readonly gatewaySecret?: string
  /** By default a free port of this machine's loopback, for a gateway in the same process. */
  readonly listen?: { readonly host: string; readonly port: number }
}

/** Starts the service. Throws an Error with a sentence about an invalid setting. */
export async function startService({
  env: given,
  log,
  wrongKey,
  gatewaySecret,
  listen = { host: '127.0.0.1', port: 0 },
}: IdentityStartOptions): Promise<Running> {
  const env = withFiles(given)
  const { adminKeys, publicHost, schemas, identifiers, languages } = readSettings(env)
  const signer = new Signer(serviceSecrets(env))
  const file = resolve(env.DATA_DIR || 'data', 'identity.sqlite')
  const health = createStoreHealth({ name: 'identity', log })
  const store = await openStore(env.MONGODB_URL, { file, identifiers })
  health.watch(() => store.restore())
  const identities = new Identities(schemas, identifiers, store, Date.now)
  const app = buildApp(
    new Map([
      ...registrationRoutes(identities, signer, Date.now),
      ...settingsRoutes(identities, signer, Date.now),
      ...guardAdmin(adminRoutes(identities), adminKeys, wrongKey ?? countWrongKeys(log), publicHost),
      ...sessionRoutes(),
    ]),
    languages,
    log,
    health.failed,
    gatewaySecret,
  )
  const close = async () => {
    await app.close()
    await health.close()
    await store.close()
  }
  const notes = [
    `Identities are kept in ${env.MONGODB_URL ? 'MongoDB' : file}`,
    ...(adminKeys.length > 0
      ? []
      : [
          '/admin/identities answers only this machine; set IDENTITY_ADMIN_KEYS to let others in, with a key',
        ]),
  ]
  try {
    const url = await app.listen(listen)
    return { url, notes, metrics: async () => health.text(), trouble: health.trouble, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openStore(
  mongodbUrl: string | undefined,
  { file, identifiers }: { readonly file: string; readonly identifiers: Identifiers },
): Promise<IdentityStore> {
  try {
    if (mongodbUrl) {
      const { openMongoStore } = await loadAdapter('mongodb', () => import('./store/mongodb.js'))
      return await openMongoStore(mongodbUrl, identifiers)
    }
    const { openSqliteStore } = await loadAdapter('libsql', () => import('./store/sqlite.js'))
    return await openSqliteStore(file, identifiers)
  } catch (error) {
    if (!(error instanceof IdentifierTaken)) throw error
    throw new Error(
      `two stored identities have the same ${error.trait} (letter case, compatibility forms and invisible characters do not count), which must now be unique; change one of them first, under the old schema or with the release before`,
    )
  }
}

/** Sessions are left to a real identity provider; this service only says so. */
function sessionRoutes(): IdentityRoutes {
  return new Map([
    [
      '/sessions/whoami',
      {
        GET: async () => {
          throw new HttpError(
            401,
            'There are no sessions here; configure an identity provider as an upstream.',
            'no_session',
          )
        },
      },
    ],
  ])
}
