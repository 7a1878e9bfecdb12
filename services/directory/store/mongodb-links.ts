import type { LinkStore } from './link-contract.js'
import type { Collections } from './mongodb-connection.js'

/** A one-time link; `_id` is the hash of its token. */
export interface LinkDocument {
  _id: string
  directory: string
  /** Epoch ms. */
  until: number
}

/** One-time links in MongoDB. */
export function createLinkStore({ links }: Collections): LinkStore {
  return {
    async addLink({ hash, directoryId, until }, now) {
      await links.deleteMany({ until: { $lte: now } })
      await links.insertOne({ _id: hash, directory: directoryId, until })
    },
    async link(hash, now) {
      const found = await links.findOne({ _id: hash, until: { $gt: now } })
      return found ? { hash, directoryId: found.directory, until: found.until } : undefined
    },
    takeLink: async (hash, now) =>
      (await links.deleteOne({ _id: hash, until: { $gt: now } })).deletedCount === 1,
    async dropLinks(directoryId) {
      await links.deleteMany({ directory: directoryId })
    },
  }
}
