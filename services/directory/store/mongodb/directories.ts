import type { Directory } from '../../model.js'
import { type Announcement, type DirectoryStore, purgeBatch } from '../contract.js'
import type { Committer } from './commit.js'
import { type Collections, readPage } from './connection.js'
import type { DirectoryStep } from './documents.js'
import { purgeEvents } from './events.js'

/** Attempts at a change without events when other changes come first. */
const maxAttempts = 20
const isSame = (one: Directory, other: Directory): boolean => JSON.stringify(one) === JSON.stringify(other)

/**
 * Directories in MongoDB. Their changes take a version like those of users and groups (commit.ts), so none is
 * lost, and each is stored together with its event. `purgeAgain` deletes what a change wrote that was still in
 * progress when its directory was removed.
 */
export function createDirectoryStore(collections: Collections, { commit, head }: Committer) {
  const { directories, journals, commits, resources, memberships, parts, removed, pulls, links, setupLinks } =
    collections

  /** True if the directory still held something. */
  async function purge(directory: string): Promise<boolean> {
    for (const collection of [directories, journals]) {
      await collection.deleteOne({ _id: directory } as object)
    }
    const firstUndelivered = (await removed.findOne({ _id: directory }))?.firstUndelivered
    await pulls.deleteMany({ directory })
    await links.deleteMany({ directory })
    await setupLinks.deleteMany({ directory })
    const found = await resources
      .find({ directory }, { projection: { _id: 1 } })
      .limit(purgeBatch)
      .toArray()
    const ids = found.map(document => document._id)
    if (ids.length > 0) {
      await memberships.deleteMany({ group: { $in: ids } })
      await memberships.deleteMany({ user: { $in: ids } })
      await resources.deleteMany({ _id: { $in: ids } })
      return true
    }
    // Their keys begin with the directory's id and a slash; the character after the slash is "0".
    const own = { _id: { $gt: `${directory}/`, $lt: `${directory}0` } }
    for (const { pending } of await commits.find({ ...own, pending: { $exists: true } }).toArray()) {
      if (pending) await parts.deleteMany({ commit: pending.id })
    }
    const { deletedCount } = await commits.deleteMany(own)
    return deletedCount + (await purgeEvents(collections, directory, firstUndelivered)) > 0
  }

  /** False when there is no directory or no step, or when `announcement` has a stale head. */
  async function change(
    id: string,
    announcement: Announcement | undefined,
    stepOf: (directory: Directory) => DirectoryStep | undefined,
  ): Promise<boolean> {
    for (let attempt = 0; attempt < (announcement ? 1 : maxAttempts); attempt++) {
      const from = announcement?.head ?? (await head(id))
      const directory = (await directories.findOne({ _id: id }))?.body
      const step = directory && stepOf(directory)
      if (!from || !step) return false
      if (await commit(id, from, { writes: [step], events: announcement?.events ?? [] })) return true
    }
    return false
  }

  const ofDirectories: DirectoryStore = {
    async createDirectory(directory) {
      const { id, tenant, product, created } = directory
      await journals.insertOne({ _id: id, version: 0, sequence: 0 })
      await directories.insertOne({ _id: id, tenant, product, created, body: directory })
    },
    directory: async id => (await directories.findOne({ _id: id }))?.body,
    directories: async (scope, page) => {
      const { tenant, product } = scope === 'all' ? {} : scope
      const whose = { ...(tenant !== undefined && { tenant }), ...(product !== undefined && { product }) }
      return (await readPage(directories, whose, page)).map(({ body }) => body)
    },
    newestDirectory: async () =>
      (await readPage(directories, {}, { offset: 0, limit: 1 }, 'created'))[0]?.body,
    replaceDirectory: (before, after, announcement) =>
      change(before.id, announcement, directory =>
        isSame(directory, before) ? { kind: 'directory', directory: after } : undefined,
      ),
    removeDirectory: (id, announcement) => {
      const queued = announcement?.events.find(event => event.to.length > 0)
      return change(id, announcement, directory => ({
        kind: 'removal',
        directory,
        firstUndelivered: queued?.sequence,
      }))
    },
    deletedDirectory: async id => (await removed.findOne({ _id: id }))?.body,
    deletedDirectories: async () =>
      (await removed.find({ firstUndelivered: { $exists: true } }).toArray()).flatMap(
        ({ body }) => body ?? [],
      ),
    replaceDeletedDirectory: async (before, after) =>
      (await removed.updateOne({ _id: before.id, body: before }, { $set: { body: after } })).matchedCount ===
      1,
    async purgeSome() {
      const next = await removed.findOne({ purgedAt: null })
      if (!next) return false
      if (!(await purge(next._id))) {
        await removed.updateOne({ _id: next._id }, { $set: { purgedAt: new Date() } })
      }
      return true
    },
  }

  async function purgeAgain(purgedAt: { $lt: Date }): Promise<void> {
    for (const { _id } of await removed.find({ purgedAt }).toArray()) {
      while (await purge(_id));
      // While its removal is still to be delivered, the directory as it was is needed for that.
      await removed.deleteOne({ _id, purgedAt, firstUndelivered: { $exists: false } })
    }
  }
  return { ofDirectories, purgeAgain }
}
