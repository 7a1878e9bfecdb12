import { setInterval } from 'node:timers'
import type { Directory, Resource, ResourceType, Scope } from '../model.js'
import { deliveryBatch, type Store } from './contract.js'
import { createCommitter } from './mongodb-commit.js'
import { connectMongodb, guarded, type ResourceDocument } from './mongodb-connection.js'

const tombstoneMs = 60 * 60 * 1000

/**
 * The MongoDB store: replica set, single server or a server that speaks MongoDB's protocol. It uses no transactions and no
 * change streams (see mongodb-commit.ts for how a change is all or nothing all the same).
 */
export async function openMongodb(url: string): Promise<Store> {
  const { client, collections } = await connectMongodb(url)
  const { directories, journals, commits, deliveries, resources, memberships, outbox } = collections
  const { commit, head, finishAbandoned } = createCommitter(collections)

  const sweep = async (): Promise<void> => {
    const old = { deletedAt: { $lt: new Date(Date.now() - tombstoneMs) } }
    await resources.deleteMany(old)
    await memberships.deleteMany(old)
    await commits.deleteMany(old)
  }
  // A sweep that fails is made up for by the next one.
  const sweeper = setInterval(() => void sweep().catch(() => undefined), tombstoneMs).unref()

  const byAge = { created: 1, _id: 1 } as const

  return guarded({
    async createDirectory(directory) {
      const { id, tenant, product, created } = directory
      await journals.insertOne({ _id: id, version: 0, sequence: 0 })
      const lease = { owner: '', until: 0 }
      await deliveries.insertOne({ _id: id, delivered: 0, attempts: 0, due: 0, lease })
      await directories.insertOne({ _id: id, tenant, product, created, body: directory })
    },
    directory: async id => (await directories.findOne({ _id: id }))?.body,
    directories: async ({ tenant, product }, { offset, limit }) =>
      (await directories.find({ tenant, product }).sort(byAge).skip(offset).limit(limit).toArray()).map(
        document => document.body as Directory,
      ),
    oldestDirectory: async () => (await directories.find().sort(byAge).limit(1).next())?.body,

    head,
    commit,

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
    resources: async (scope, type, { offset, limit }) => {
      const found = resources.find({ ...scoped(scope), type })
      return (await found.sort(byAge).skip(offset).limit(limit).toArray()).map(toResource)
    },
    count: (directoryId, type) => resources.countDocuments({ directory: directoryId, type }),
    async scan({ directoryId, type, terms, after, limit }) {
      const place = after && {
        $or: [{ created: { $gt: after.created } }, { created: after.created, _id: { $gt: after.id } }],
      }
      const among = terms && { terms: { $in: [...terms] } }
      const found = resources.find({ directory: directoryId, type, ...among, ...place })
      return (await found.sort(byAge).limit(limit).toArray()).map(toResource)
    },

    async members(groupId, { offset, limit }) {
      const pairs = await memberships
        .find({ group: groupId })
        .sort({ user: 1 })
        .skip(offset)
        .limit(limit)
        .toArray()
      const ids = pairs.map(pair => pair.user)
      const users = await resources.find({ _id: { $in: ids } }, { projection: { label: 1 } }).toArray()
      const labels = new Map(users.map(user => [user._id, user.label]))
      // A label is missing only while a user's deletion is being spread.
      return ids.flatMap(userId => {
        const label = labels.get(userId)
        return label === undefined ? [] : [{ userId, label }]
      })
    },
    async membersAmong(groupId, userIds) {
      const pairs = await memberships.find({ group: groupId, user: { $in: [...userIds] } }).toArray()
      return new Set(pairs.map(pair => pair.user))
    },
    groupIdsOf: async userId =>
      (await memberships.find({ user: userId }).sort({ group: 1 }).toArray()).map(pair => pair.group),

    async directoriesWithEvents() {
      await finishAbandoned()
      return outbox.distinct('directory')
    },
    async claimDelivery(directoryId, owner, now, until) {
      const free = { $or: [{ 'lease.owner': owner }, { 'lease.until': { $lte: now } }] }
      const document = await deliveries.findOneAndUpdate(
        { _id: directoryId, ...free },
        { $set: { lease: { owner, until } } },
        { returnDocument: 'after' },
      )
      if (!document) return undefined
      const { delivered, attempts, due } = document
      const queued = outbox.find({ directory: directoryId, sequence: { $gt: delivered } })
      const events = await queued.sort({ sequence: 1 }).limit(deliveryBatch).toArray()
      return {
        attempts,
        due,
        events: events.map(({ event, sequence, body }) => ({ id: event, sequence, body })),
      }
    },
    async reportDelivery(directoryId, owner, { delivered, attempts, due, until }) {
      const { matchedCount } = await deliveries.updateOne(
        { _id: directoryId, 'lease.owner': owner },
        {
          $set: { attempts, due, 'lease.until': until },
          // Only forward: an event put back by a late repeat of its change is never delivered out of order.
          ...(delivered === undefined ? {} : { $max: { delivered } }),
        },
      )
      if (matchedCount === 0) return false
      if (delivered !== undefined) {
        await outbox.deleteMany({ directory: directoryId, sequence: { $lte: delivered } })
      }
      return true
    },

    async close() {
      clearInterval(sweeper)
      await client.close()
    },
  })
}

function scoped(scope: Scope): { directory: string } | { tenant: string; product: string } {
  return 'directoryId' in scope
    ? { directory: scope.directoryId }
    : { tenant: scope.tenant, product: scope.product }
}

function toResource(document: ResourceDocument): Resource {
  const { _id: id, directory: directoryId, tenant, product, created, modified, label, raw } = document
  const type: ResourceType = document.type
  return { id, directoryId, type, tenant, product, created, modified, label, raw: JSON.parse(raw) }
}
