import { createPoster } from '../../webhooks/post.js'
import { withFiles } from '../environment.js'
import type { ServiceLog } from '../log.js'
import { openFolder } from '../storage/data-folder.js'
import { createStoreHealth } from '../storage/health.js'
import { createCall } from './events/call.js'
import { notifyAll, startCourier } from './events/courier.js'
import { startRetention } from './events/retention.js'
import { startExternal } from './external/service.js'
import { bounds } from './external/settings.js'
import { createMetrics } from './metrics.js'
import { createSecretBox, encryptionKeys, type SecretBox } from './secrets.js'
import { readSettings } from './settings.js'
import type { Store } from './store/contract.js'
import { openStore } from './store/open.js'
import { createDirectoryChanger, purgeRemoved } from './sync/directories.js'
import { createSearchQueue } from './sync/search-queue.js'
import { type Committed, createWriters } from './sync/writers.js'

/** Opens the data folder and the database, and starts the background work. Throws as `start` does. */
export async function openCore({ env, log }: { env: NodeJS.ProcessEnv; log: ServiceLog }) {
  const settings = readSettings(env)
  openFolder(settings.dataDir)
  const keys = encryptionKeys(settings)
  const box = createSecretBox(keys)
  const health = createStoreHealth({ name: 'directory', log })
  const store = await openStore({ ...settings, reportFault: health.failed })
  health.watch(store.restore)
  /** Called in reverse order on close; every part that needs cleanup registers it here. */
  const closers: Array<() => Promise<void> | void> = [() => store.close(), () => health.close()]
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    await tryKey(store, box)
    await purgeRemoved(store)
    const retention = startRetention(store, settings.webhookLogTtlMs, log)
    closers.push(() => retention.close())
    const poster = createPoster(settings.webhookTargets)
    if (withFiles(env).DSYNC_WEBHOOK_BATCH_CRON_INTERVAL && !settings.webhookBatch) {
      log.warn({}, 'DSYNC_WEBHOOK_BATCH_CRON_INTERVAL has no effect without DSYNC_WEBHOOK_BATCH_SIZE')
    }
    const metrics = createMetrics(store, health)
    const { called } = metrics
    const call = createCall(poster, box)
    const courier = startCourier({ store, call, poster, log, called, batch: settings.webhookBatch })
    closers.push(() => courier.close())
    const committed: Committed = (directory, events) => notifyAll(courier, directory.id, events)
    const writers = createWriters(store, log, committed)
    const directories = createDirectoryChanger(store, committed)
    const own = { store, box, encryptionKey: keys[0], writers, log }
    const external = startExternal({ ...own, settings: settings.external, bounds })
    closers.push(() => external.puller.close())
    return {
      settings,
      store,
      box,
      call,
      writers,
      directories,
      searches: createSearchQueue(),
      courier,
      external,
      metrics,
      health,
      log,
      closers,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The service without its HTTP side. */
export type DirectoryCore = Awaited<ReturnType<typeof openCore>>

/**
 * A wrong encryption key should fail the start, not the first request of an identity provider. A change of keys goes
 * from the oldest directory to the newest.
 */
async function tryKey(store: Store, box: SecretBox): Promise<void> {
  const [oldest] = await store.directories('all', { offset: 0, limit: 1 })
  const newest = await store.newestDirectory()
  try {
    for (const directory of [oldest, newest]) {
      if (directory) box.open(directory.scimSecret, directory.id, 'scim')
    }
  } catch {
    throw new Error(
      'The stored secrets cannot be decrypted with this key: set ENCRYPTION_KEY, or DATA_DIR with its encryption.key, to what it was when they were stored. To change the key, write the new one before the old one, separated by a comma',
    )
  }
}
