import { type Collections, insertIfNew } from './mongodb-connection.js'
import type { SetupLink, SetupLinkStore } from './setup-link-contract.js'

/** A set-up link; `_id` is the hash of its token. That it has shown the secret is a document of its own: an insert is atomic on every server. */
export interface SetupLinkDocument {
  _id: string
  /** Absent in the mark that the secret was shown, whose `_id` is the link's with a dot. */
  id?: string
  directory: string
  /** Epoch ms. */
  created: number
  until: number
}

const markOf = (hash: string): string => `${hash}.shown`

/** Set-up links in MongoDB. */
export function createSetupLinkStore({ setupLinks }: Collections): SetupLinkStore {
  const toLink = async (document: SetupLinkDocument): Promise<SetupLink> => {
    const { _id: hash, id = '', directory: directoryId, created, until } = document
    const mark = await setupLinks.findOne({ _id: markOf(hash) })
    return { ...{ id, hash, directoryId, created, until }, ...(mark && { shown: mark.created }) }
  }
  const find = (hash: string, now: number) => setupLinks.findOne({ _id: hash, until: { $gt: now } })

  return {
    async addSetupLink({ hash, id, directoryId, created, until }, now) {
      await setupLinks.deleteMany({ until: { $lte: now } })
      await setupLinks.insertOne({ _id: hash, id, directory: directoryId, created, until })
    },
    async setupLink(hash, now) {
      const found = await find(hash, now)
      return found?.id === undefined ? undefined : toLink(found)
    },
    async setupLinks(directory, now) {
      const found = await setupLinks.find({ directory }).sort({ created: 1, _id: 1 }).toArray()
      const links = found.filter(({ id, until }) => id !== undefined && until > now)
      return Promise.all(links.map(toLink))
    },
    async showOnce(hash, now) {
      const found = await find(hash, now)
      if (found?.id === undefined) return false
      const { directory, until } = found
      return insertIfNew(setupLinks, { _id: markOf(hash), directory, created: now, until })
    },
    async dropSetupLinks(directory, id) {
      const found = await setupLinks.find({ directory }).sort({ created: 1, _id: 1 }).toArray()
      const hashes = found.filter(link => link.id !== undefined && (id === undefined || link.id === id))
      const ids = hashes.flatMap(({ _id }) => [_id, markOf(_id)])
      await setupLinks.deleteMany({ _id: { $in: ids } })
      return hashes.length
    },
  }
}
