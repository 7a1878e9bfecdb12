import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { encryptionKey, managementKey, openDataFolder } from './data-folder.js'
import { startCourier } from './events/courier.js'
import { createPoster } from './events/post.js'
import { startRetention } from './events/retention.js'
import type { Log } from './log.js'
import { addApiDocument } from './routes/api-document.js'
import { createServer, type Server } from './routes/http.js'
import { addManagement, answerErrors, type ManagementParts, managementPaths } from './routes/management.js'
import { addScim, scimPath } from './routes/scim.js'
import { createSecretBox, hashKey, type SecretBox } from './secrets.js'
import { readSettings, type Settings } from './settings.js'
import type { Store } from './store/contract.js'
import { createIntake } from './sync/intake.js'
import { purgeRemoved } from './sync/removal.js'
import { createWriters } from './sync/writers.js'

/** The running service. `notes` are lines the operator must see at this start. */
export interface DirectoryService {
  readonly url: string
  readonly notes: string[]
  close(): Promise<void>
}

/**
 * Starts the embedded directory service (design section 11) on a free loopback port. It stands behind the gateway and knows
 * nothing of limits. Throws an Error with a sentence for the operator when a setting or the database is unusable.
 */
export async function start(options: { env: NodeJS.ProcessEnv; log: Log }): Promise<DirectoryService> {
  const { log } = options
  const settings = readSettings(options.env)
  openDataFolder(settings.dataDir)
  const box = createSecretBox(settings.encryptionKey ?? encryptionKey(settings.dataDir))
  const store = await openStore(settings)
  const closers = [() => store.close()]
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    await tryKey(store, box)
    await purgeRemoved(store)
    const retention = startRetention(store, settings.webhookLogTtlMs, log)
    closers.push(() => retention.close())
    const poster = createPoster(settings.allowPrivateWebhooks)
    if (options.env.DSYNC_WEBHOOK_BATCH_CRON_INTERVAL && !settings.webhookBatch) {
      log.warn({}, 'DSYNC_WEBHOOK_BATCH_CRON_INTERVAL has no effect without DSYNC_WEBHOOK_BATCH_SIZE')
    }
    const courier = startCourier({ store, box, poster, log, batch: settings.webhookBatch })
    closers.push(() => courier.close())
    const keyHashes: Buffer[] = []
    const server = createServer()
    closers.push(() => server.close())
    const { baseUrl, allowPrivateWebhooks } = settings
    addRoutes(server, { store, box, keyHashes, baseUrl, allowPrivateWebhooks, courier, log })
    await server.listen({ host: '127.0.0.1', port: 0 })
    // Last: a key is shown once, so it is made when nothing can fail any more.
    const { hashes, notes } = managementKeys(settings)
    keyHashes.push(...hashes)
    const { port } = server.server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}`, notes, close }
  } catch (error) {
    await close()
    throw error
  }
}

function addRoutes(server: Server, parts: ManagementParts): void {
  const { store, log, courier } = parts
  const writers = createWriters(store, log, directory => {
    if (directory.webhook) courier.notify(directory.id)
  })
  answerErrors(server, log)
  addApiDocument(server, managementPaths[1])
  for (const prefix of managementPaths) {
    server.register(async scope => addManagement(scope, parts), { prefix })
  }
  const { users, groups } = writers()
  const intake = createIntake(store, users, groups)
  server.register(async scope => addScim(scope, { ...parts, intake }), { prefix: scimPath })
}

function managementKeys({ apiKeys, dataDir }: Settings): { hashes: Buffer[]; notes: string[] } {
  if (apiKeys) return { hashes: apiKeys.map(hashKey), notes: [] }
  const { hash, made, file } = managementKey(dataDir)
  if (made === undefined) return { hashes: [hash], notes: [] }
  return {
    hashes: [hash],
    notes: [`Management API key (shown once): ${made}`, `To get a new one, delete ${file} and start again.`],
  }
}

/** Only the chosen database's driver is loaded. */
async function openStore({ mongodbUrl, dataDir }: Settings): Promise<Store> {
  if (mongodbUrl !== '') return (await import('./store/mongodb.js')).openMongodb(mongodbUrl)
  const { openSqlite } = await import('./store/sqlite.js')
  try {
    return openSqlite(join(dataDir, 'directory.db'))
  } catch (error) {
    throw new Error(`DATA_DIR ${dataDir}: directory.db cannot be opened: ${(error as Error).message}`)
  }
}

/** A wrong encryption key is better found at start than by the first identity provider that calls. */
async function tryKey(store: Store, box: SecretBox): Promise<void> {
  const directory = await store.oldestDirectory()
  if (!directory) return
  try {
    box.open(directory.scimSecret, directory.id, 'scim')
  } catch {
    throw new Error(
      'The stored secrets do not open with this key: set ENCRYPTION_KEY, or DATA_DIR with its encryption.key, as it was when they were stored',
    )
  }
}
