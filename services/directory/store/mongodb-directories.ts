import type { Directory } from '../model.js'
import { type DirectoryStore, purgeBatch } from './contract.js'
import { byAge, type Collections, placedAfter } from './mongodb-connection.js'
import { purgeEvents } from './mongodb-events.js'

/**
 * Directories in MongoDB. The mark in `removed` is the moment of a removal: all that follows may be repeated, also by
 * another process. `purgeAgain` takes away what a change wrote that was still under way when its directory went.
 */
export function createDirectoryStore(collections: Collections) {
  const { directories, journals, commits, resources, memberships, parts, removed, pulls, links } = collections

  /** True while the directory still held something. */
  async function purge(directory: string): Promise<boolean> {
    for (const collection of [directories, journals]) {
      await collection.deleteOne({ _id: directory } as object)
    }
    await pulls.deleteMany({ directory })
    await links.deleteMany({ directory })
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
    // Their keys begin with the directory's id; the sign after the slash is a zero.
    const own = { _id: { $gt: `${directory}/`, $lt: `${directory}0` } }
    for (const { pending } of await commits.find({ ...own, pending: { $exists: true } }).toArray()) {
      if (pending) await parts.deleteMany({ commit: pending.id })
    }
    const { deletedCount } = await commits.deleteMany(own)
    return deletedCount + (await purgeEvents(collections, directory)) > 0
  }

  const ofDirectories: DirectoryStore = {
    async createDirectory(directory) {
      const { id, tenant, product, created } = directory
      await journals.insertOne({ _id: id, version: 0, sequence: 0 })
      await directories.insertOne({ _id: id, tenant, product, created, body: directory })
    },
    directory: async id => (await directories.findOne({ _id: id }))?.body,
    async directories({ tenant, product }, { after, offset, limit }) {
      const whose = tenant === undefined ? { product } : { tenant, product }
      const found = directories.find({ ...whose, ...placedAfter(after) })
      return (await found.sort(byAge).skip(offset).limit(limit).toArray()).map(
        document => document.body as Directory,
      )
    },
    everyDirectory: async ({ after, limit }) =>
      (await directories.find(placedAfter(after)).sort(byAge).limit(limit).toArray()).map(
        document => document.body as Directory,
      ),
    oldestDirectory: async () => (await directories.find().sort(byAge).limit(1).next())?.body,
    newestDirectory: async () =>
      (await directories.find().sort({ created: -1, _id: -1 }).limit(1).next())?.body,
    replaceDirectory: async (before, after) =>
      (await directories.updateOne({ _id: before.id, body: before }, { $set: { body: after } }))
        .matchedCount === 1,
    async removeDirectory(id) {
      if (!(await directories.findOne({ _id: id }, { projection: { _id: 1 } }))) return false
      await removed.updateOne({ _id: id }, { $set: { purgedAt: null } }, { upsert: true })
      await directories.deleteOne({ _id: id })
      return true
    },
    async purgeSome() {
      const next = await removed.findOne({ purgedAt: null })
      if (!next) return false
      if (!(await purge(next._id))) {
        await removed.updateOne({ _id: next._id }, { $set: { purgedAt: new Date() } })
      }
      return true
    },
  }

  async function purgeAgain(when: { $lt: Date }): Promise<void> {
    for (const { _id } of await removed.find({ purgedAt: when }).toArray()) {
      while (await purge(_id));
      await removed.deleteOne({ _id })
    }
  }
  return { ofDirectories, purgeAgain }
}
