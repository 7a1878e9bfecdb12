import { maxNewTokens, maxSetupLinks } from '../../limits.js'
import type { LinkStore, SetupLink, SetupLinkStore } from '../contract.js'
import { type Collections, insertIfNew } from './connection.js'

/** A one-time link; `_id` is the hash of its token. */
export interface LinkDocument {
  _id: string
  directory: string
  /** Epoch ms. */
  until: number
}

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

/**
 * A set-up link; `_id` is the hash of its token. That it has shown the secret, and each new secret that it made, are
 * documents of their own (marks): an insert is atomic on every server.
 */
export interface SetupLinkDocument {
  _id: string
  /** Absent in marks, whose `_id` is the link's with a suffix after a dot. */
  id?: string
  directory: string
  /** Epoch ms. */
  created: number
  until: number
}

const markOf = (hash: string): string => `${hash}.shown`
const newMarksOf = (hash: string): string[] =>
  Array.from({ length: maxNewTokens }, (_, index) => `${hash}.new${index + 1}`)

export function createSetupLinkStore({ setupLinks }: Collections): SetupLinkStore {
  const toLink = async (document: SetupLinkDocument): Promise<SetupLink> => {
    const { _id: hash, id = '', directory: directoryId, created, until } = document
    const ids = [markOf(hash), ...newMarksOf(hash)]
    const marks = await setupLinks.find({ _id: { $in: ids } }).toArray()
    const shown = marks.find(mark => mark._id === markOf(hash))
    const made = marks.length - (shown ? 1 : 0)
    return {
      ...{ id, hash, directoryId, created, until },
      ...(shown && { shown: shown.created }),
      ...(made > 0 && { made }),
    }
  }
  const listed = async (directory: string, now: number): Promise<SetupLinkDocument[]> => {
    const found = await setupLinks.find({ directory }).sort({ created: 1, _id: 1 }).toArray()
    return found.filter(({ id, until }) => id !== undefined && until > now)
  }
  const find = (hash: string, now: number) => setupLinks.findOne({ _id: hash, until: { $gt: now } })

  return {
    async addSetupLink({ hash, id, directoryId, created, until }, now) {
      await setupLinks.deleteMany({ until: { $lte: now } })
      await setupLinks.insertOne({ _id: hash, id, directory: directoryId, created, until })
      // Counted after the insert, so that links made at once never exceed the number together.
      if ((await listed(directoryId, now)).length <= maxSetupLinks) return true
      await setupLinks.deleteOne({ _id: hash })
      return false
    },
    async setupLink(hash, now) {
      const found = await find(hash, now)
      return found?.id === undefined ? undefined : toLink(found)
    },
    async setupLinks(directory, now) {
      return Promise.all((await listed(directory, now)).map(toLink))
    },
    async showOnce(hash, now) {
      const found = await find(hash, now)
      if (found?.id === undefined) return false
      const { directory, until } = found
      return insertIfNew(setupLinks, { _id: markOf(hash), directory, created: now, until })
    },
    async countNewSecret(hash, now) {
      const found = await find(hash, now)
      if (found?.id === undefined) return false
      const { directory, until } = found
      for (const _id of newMarksOf(hash)) {
        if (await insertIfNew(setupLinks, { _id, directory, created: now, until })) return true
      }
      return false
    },
    async dropSetupLinks(directory, id) {
      const found = await setupLinks.find({ directory }).sort({ created: 1, _id: 1 }).toArray()
      const hashes = found.filter(link => link.id !== undefined && (id === undefined || link.id === id))
      const ids = hashes.flatMap(({ _id }) => [_id, markOf(_id), ...newMarksOf(_id)])
      await setupLinks.deleteMany({ _id: { $in: ids } })
      return hashes.length
    },
  }
}
