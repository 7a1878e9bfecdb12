import { existsSync } from 'node:fs'
import { resealWebhooks } from './events/webhook.js'
import { resealTokens } from './external/connection.js'
import type { Directory } from './model.js'
import { createSecretBox, encryptionKeys, type SecretBox } from './secrets.js'
import { readSettings } from './settings.js'
import type { Store } from './store/contract.js'
import { databaseFile, openStore } from './store/open.js'
import { directoriesOf } from './sync/lookup.js'

export interface KeyRotation {
  readonly directories: number
  /** Directories with at least one secret that was re-encrypted. */
  readonly reencrypted: number
  /** Directories with a secret that none of the keys can decrypt. */
  readonly unreadable: readonly string[]
  /** True when everything readable is under the first key: the others are no longer needed. */
  readonly done: boolean
}

/** A process that still encrypts with an older key would keep us going forever. */
const mostPasses = 3
const mostAttempts = 20

/**
 * Re-encrypts all stored secrets with the first of the keys, while the service runs. A directory is written only if it
 * is unchanged since it was read, so that no change is lost. Throws an Error with a sentence when a setting or the
 * database is unusable.
 */
export async function rotateKeys({ env }: { readonly env: NodeJS.ProcessEnv }): Promise<KeyRotation> {
  const settings = readSettings(env)
  const { mongodbUrl, dataDir } = settings
  if (mongodbUrl === '' && !existsSync(databaseFile(dataDir))) {
    throw new Error(`DATA_DIR ${dataDir} holds no directory.db: set it, or MONGODB_URL, as for the gateway`)
  }
  const box = createSecretBox(encryptionKeys(settings))
  const store = await openStore(settings)
  try {
    return await rotateAll(store, box)
  } finally {
    await store.close()
  }
}

/** Like `rotateKeys`, with a store and keys that are already open. */
export async function rotateAll(store: Store, box: SecretBox): Promise<KeyRotation> {
  const changed = new Set<string>()
  for (let pass = 1; ; pass++) {
    const unreadable: string[] = []
    let directories = 0
    let left = 0
    for await (const { directory, place } of everyDirectory(store)) {
      directories += 1
      const outcome = await rotate(box, directory, place)
      if (outcome === 'unreadable') unreadable.push(directory.id)
      if (outcome === 'changed') changed.add(directory.id)
      if (outcome !== 'unchanged' && outcome !== 'unreadable') left += 1
    }
    // A pass that found nothing to do proves that the previous one left nothing behind.
    const done = left === 0
    if (done || pass === mostPasses) return { directories, reencrypted: changed.size, unreadable, done }
  }
}

/** How a directory is read and written. */
interface DirectoryPlace {
  read(id: string): Promise<Directory | undefined>
  replace(before: Directory, after: Directory): Promise<boolean>
}

/** Includes removed directories whose removal has not been delivered yet. */
async function* everyDirectory(
  store: Store,
): AsyncGenerator<{ directory: Directory; place: DirectoryPlace }> {
  const present: DirectoryPlace = { read: store.directory, replace: store.replaceDirectory }
  for await (const directory of directoriesOf(store, 'all')) yield { directory, place: present }
  const deleted: DirectoryPlace = { read: store.deletedDirectory, replace: store.replaceDeletedDirectory }
  for (const directory of await store.deletedDirectories()) yield { directory, place: deleted }
}

type Outcome = 'unchanged' | 'changed' | 'unreadable' | 'contested'

async function rotate(box: SecretBox, read: Directory, place: DirectoryPlace): Promise<Outcome> {
  let before: Directory | undefined = read
  for (let attempt = 0; before && attempt < mostAttempts; attempt++) {
    let after: Directory
    try {
      after = reseal(box, before)
    } catch {
      return 'unreadable'
    }
    if (JSON.stringify(after) === JSON.stringify(before)) return 'unchanged'
    if (await place.replace(before, after)) return 'changed'
    before = await place.read(read.id)
  }
  return before ? 'contested' : 'unchanged'
}

/** Re-encrypts everything that is sealed in a directory. */
function reseal(box: SecretBox, directory: Directory): Directory {
  const { id, scimSecret, oldScimSecrets, external } = directory
  const scim = (sealed: string): string => box.reseal(sealed, id, 'scim')
  return {
    ...directory,
    scimSecret: scim(scimSecret),
    ...(oldScimSecrets && {
      oldScimSecrets: oldScimSecrets.map(old => ({ ...old, secret: scim(old.secret) })),
    }),
    ...resealWebhooks(box, directory),
    ...(external && { external: resealTokens(box, id, external) }),
  }
}
