import type { Resource, ResourceType } from '../../model.js'
import type { Store } from '../contract.js'
import { createCommitter } from './commit.js'
import { connectMongodb, readPage, scoped } from './connection.js'
import { createDirectoryStore } from './directories.js'
import type { ResourceDocument } from './documents.js'
import { createEventStore } from './events.js'
import { createLinkStore, createSetupLinkStore } from './links.js'
import { createPullStore } from './pulls.js'

export { mongodbFault } from '../../../storage/mongodb.js'

const tombstoneMs = 60 * 60 * 1000

/**
 * The MongoDB store: replica set, single server or a server that speaks MongoDB's protocol. It uses no transactions
 * and no change streams (see commit.ts for how a change is atomic all the same).
 */
export async function openMongodb(url: string): Promise<Store> {
  const { client, collections } = await connectMongodb(url)
  const { commits, resources, memberships } = collections
  const committer = createCommitter(collections)
  const { commit, head, finishAbandoned } = committer
  const { ofDirectories, purgeAgain } = createDirectoryStore(collections, committer)

  const sweep = async (): Promise<void> => {
    const old = { deletedAt: { $lt: new Date(Date.now() - tombstoneMs) } }
    await resources.deleteMany(old)
    await memberships.deleteMany(old)
    await commits.deleteMany(old)
    await purgeAgain(old.deletedAt)
  }
  const ofEvents = createEventStore(collections, finishAbandoned)

  return {
    ...ofDirectories,
    ...ofEvents,
    ...createPullStore(collections),
    ...createLinkStore(collections),
    ...createSetupLinkStore(collections),

    head,
    commit,

    async pruneSome(before) {
      const isMore = await ofEvents.pruneSome(before)
      await sweep()
      return isMore
    },

    async resource(scope, type, id) {
      const document = await resources.findOne({ _id: id, type, ...scoped(scope) })
      return document ? toResource(document) : undefined
    },
    resourcesById: async (directoryId, type, ids) => {
      const found = await resources.find({ _id: { $in: [...ids] }, directory: directoryId, type }).toArray()
      return found.map(toResource)
    },
    async idsAmong(directoryId, type, ids) {
      const among = { _id: { $in: [...ids] }, directory: directoryId, type }
      const found = await resources.find(among, { projection: { _id: 1 } }).toArray()
      return new Set(found.map(document => document._id))
    },
    resources: async (scope, type, page) =>
      (await readPage(resources, { ...scoped(scope), type }, page)).map(toResource),
    count: (directoryId, type) => resources.countDocuments({ directory: directoryId, type }),
    async scan({ directoryId, type, terms, after, limit }) {
      const which = { directory: directoryId, type, ...(terms && { terms: { $in: [...terms] } }) }
      return (await readPage(resources, which, { after, offset: 0, limit })).map(toResource)
    },

    async members(groupId, { after, offset, limit }) {
      const pairs = await memberships
        .find({ group: groupId, ...(after ? { user: { $gt: after.id } } : {}) })
        .sort({ user: 1 })
        .skip(offset)
        .limit(limit)
        .toArray()
      const ids = pairs.map(pair => pair.user)
      const users = await resources.find({ _id: { $in: ids } }, { projection: { label: 1 } }).toArray()
      const labels = new Map(users.map(user => [user._id, user.label]))
      // A label is missing only while a user's deletion is being spread. The member stays: a short page would look
      // like the last one.
      return pairs.map(({ user, display }) => ({ userId: user, label: display ?? labels.get(user) ?? '' }))
    },
    async membersAmong(groupId, userIds) {
      const pairs = await memberships.find({ group: groupId, user: { $in: [...userIds] } }).toArray()
      return new Map(pairs.map(({ user, display }) => [user, display]))
    },
    groupIdsOf: async userId =>
      (await memberships.find({ user: userId }).sort({ group: 1 }).toArray()).map(pair => pair.group),

    async restore() {
      await client.db().command({ ping: 1 })
    },
    close: () => client.close(),
  }
}

function toResource(document: ResourceDocument): Resource {
  const { _id: id, directory: directoryId, tenant, product, created, modified, label, raw } = document
  const type: ResourceType = document.type
  return { id, directoryId, type, tenant, product, created, modified, label, raw: JSON.parse(raw) }
}
