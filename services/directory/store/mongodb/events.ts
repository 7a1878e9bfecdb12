import type { Filter } from 'mongodb'
import { ownerOf, queueOf, queueRange } from '../../events/queue.js'
import type { Claim, DeadLetter, EventStore, LogEntry } from '../event-contract.js'
import { type Collections, readPage, scoped } from './connection.js'
import { type DeadDocument, fromDocument, type LeaseDocument, toDocument, toEvent } from './documents.js'
import { leaseId, newestLease, takeLease } from './leases.js'

const queuesWithin = (directory: string) => {
  const [$gte, $lt] = queueRange(directory)
  return { directory: { $gte, $lt } }
}

/** Whether a directory has events waiting or dead letters. */
async function isOwed({ outbox, deadLetters }: Collections, directory: string): Promise<boolean> {
  const found = (await outbox.findOne(queuesWithin(directory))) ?? (await deadLetters.findOne({ directory }))
  return found !== null
}

/** Resets the attempts, so that the event of a removal has all of its own. */
export async function forgiveLeases({ leases }: Collections, directory: string): Promise<void> {
  await leases.updateMany(queuesWithin(directory), { $set: { attempts: 0, due: 0 } })
}

/**
 * Deletes what is left of a removed directory's events, except those from the sequence `firstUndelivered` on, and returns how
 * many.
 */
export async function purgeEvents(
  collections: Collections,
  directory: string,
  firstUndelivered: number | undefined,
): Promise<number> {
  const { events, outbox, leases, deadLetters, webhookLog } = collections
  const before = firstUndelivered === undefined ? {} : { sequence: { $lt: firstUndelivered } }
  const deletions = await Promise.all([
    events.deleteMany({ directory, ...before }),
    outbox.deleteMany({ ...queuesWithin(directory), ...before }),
    deadLetters.deleteMany({ directory, ...before }),
    webhookLog.deleteMany({ directory }),
    ...(firstUndelivered === undefined ? [leases.deleteMany(queuesWithin(directory))] : []),
  ])
  return deletions.reduce((sum, { deletedCount }) => sum + deletedCount, 0)
}

/** Passes removed directories with no events left to deliver on to the purge. */
async function purgeDelivered(collections: Collections): Promise<void> {
  const { removed } = collections
  for (const { _id } of await removed.find({ firstUndelivered: { $exists: true } }).toArray()) {
    if (await isOwed(collections, _id)) continue
    await removed.updateOne({ _id }, { $set: { purgedAt: null }, $unset: { firstUndelivered: '', body: '' } })
  }
}

/**
 * Events in MongoDB. A lease is a document of its own under the key of directory and fence: taking it is an insert,
 * which is atomic on every server, and a delivery writes its progress to its own lease only. A stalled process whose
 * work another has taken over therefore writes to a lease that is no longer read.
 */
export function createEventStore(collections: Collections, finishAbandoned: () => Promise<void>): EventStore {
  const { journals, leases, outbox, events, deadLetters, webhookLog, removed } = collections

  async function newest(queue: string): Promise<LeaseDocument> {
    const none = { _id: '', directory: queue, fence: 0, until: 0, delivered: 0, attempts: 0, due: 0 }
    return (await newestLease(leases, queue)) ?? none
  }

  /**
   * The last event that may be delivered: of the last change that is completely spread, since some events of other
   * changes may not be there yet. Undefined when there is nothing left to deliver them with.
   */
  async function lastOf(directory: string): Promise<number | undefined> {
    const journal = await journals.findOne({ _id: directory })
    return journal?.sequence ?? (await removed.findOne({ _id: directory }))?.firstUndelivered
  }

  async function queued(queue: string, delivered: number, limit: number) {
    const range = { $gt: delivered, $lte: (await lastOf(ownerOf(queue).directoryId)) ?? 0 }
    return outbox.find({ directory: queue, sequence: range }).sort({ sequence: 1 }).limit(limit).toArray()
  }

  const claim: EventStore['claimDelivery'] = async (queue, { now, until, limit, fence, hasten }) => {
    const state = await newest(queue)
    const own = state.fence === fence && state.until > now
    if (!own && state.until > now) return { kind: 'held' }
    const waits = state.due > now && !hasten
    const { directoryId: directory, webhookId } = ownerOf(queue)
    const requested = { directory, replay: true, webhookId } as Filter<DeadDocument>
    const [found, replays] = await Promise.all([
      queued(queue, state.delivered, waits ? 1 : limit),
      deadLetters.find(requested).sort({ sequence: 1 }).limit(limit).toArray(),
    ])
    if (replays.length === 0 && (found.length === 0 || waits)) {
      if (own) await leases.updateOne({ _id: state._id }, { $set: { until: 0 } })
      if (found.length > 0) return { kind: 'later', at: state.due }
      // A late repeat of a change (see commit.ts) may have restored delivered events, or a directory's.
      const done = (await lastOf(directory)) === undefined ? {} : { sequence: { $lte: state.delivered } }
      await outbox.deleteMany({ directory: queue, ...done })
      return { kind: 'nothing' }
    }
    const held = own ? await renew(state, until) : await takeLease(leases, state, until)
    if (!held) return { kind: 'held' }
    const { attempts, due } = state
    const delivery = {
      ...{ fence: held, attempts, due },
      events: waits ? [] : found.map(toEvent),
      replays: replays.map(fromDocument<DeadLetter>),
    }
    return { kind: 'delivery', delivery } satisfies Claim
  }

  /** Returns the fence, or undefined when another process has taken the lease. */
  async function renew({ _id, directory, fence }: LeaseDocument, until: number): Promise<number | undefined> {
    await leases.updateOne({ _id }, { $set: { until } })
    return (await newest(directory)).fence === fence ? fence : undefined
  }

  const report: EventStore['reportDelivery'] = async (queue, fence, done) => {
    if ((await newest(queue)).fence !== fence) return false
    const { delivered, attempts, due, until, dead = [], failedAgain = [], revived = [], log = [] } = done
    // Before the event counts as done, so that a crash in between repeats an event and loses none.
    const buried = [...dead, ...failedAgain].map((letter, i) => {
      const { _id, ...fields } = toDocument(letter)
      // A requested replay has had its attempt.
      const update = { $set: { ...fields, replay: false } }
      return { updateOne: { filter: { _id }, update, upsert: i < dead.length } }
    })
    if (buried.length > 0) await deadLetters.bulkWrite(buried)
    if (revived.length > 0) await deadLetters.deleteMany({ _id: { $in: [...revived] } })
    const noted = log.map(toDocument).map(({ _id, created, ...fields }) => ({
      updateOne: { filter: { _id }, update: { $set: fields, $setOnInsert: { created } }, upsert: true },
    }))
    if (noted.length > 0) await webhookLog.bulkWrite(noted)
    const progress = { attempts, due, until, ...(delivered === undefined ? {} : { delivered }) }
    const { matchedCount } = await leases.updateOne({ _id: leaseId(queue, fence) }, { $set: progress })
    if (matchedCount === 0) return false
    if (delivered !== undefined) await outbox.deleteMany({ directory: queue, sequence: { $lte: delivered } })
    return true
  }

  return {
    waitingEvents: () => outbox.estimatedDocumentCount(),
    async queuesWithEvents() {
      await finishAbandoned()
      const waiting = await outbox.distinct('directory')
      const requested = await deadLetters.distinct('directory', { replay: true })
      const queues = requested.map(async directory => {
        const webhooks = await deadLetters.distinct('webhookId', { directory, replay: true })
        return webhooks.map(webhook => queueOf(directory, webhook))
      })
      return [...new Set([...waiting, ...(await Promise.all(queues)).flat()])]
    },
    claimDelivery: claim,
    reportDelivery: report,

    async feed(directory, after, limit) {
      const last = (await journals.findOne({ _id: directory }))?.sequence ?? 0
      const range = { $gt: after, $lte: last }
      const found = await events
        .find({ directory, sequence: range })
        .sort({ sequence: 1 })
        .limit(limit)
        .toArray()
      return { last, events: found.map(toEvent) }
    },

    deadLetters: async (scope, page) =>
      (await readPage(deadLetters, scoped(scope), page, 'failed')).map(fromDocument<DeadLetter>),
    async deadLetter(id) {
      const found = await deadLetters.findOne({ _id: id })
      return found ? fromDocument<DeadLetter>(found) : undefined
    },
    deleteDeadLetter: async id => (await deadLetters.deleteOne({ _id: id })).deletedCount === 1,
    async replay(directory, which) {
      // Either value of `replay`, named so that its index can be used.
      const replay = { $in: [false, true] }
      const wanted =
        'id' in which
          ? { _id: which.id }
          : { replay, webhookId: which.webhookId, sequence: { $gt: which.after } }
      const found = { directory, ...wanted } as Filter<DeadDocument>
      return (await deadLetters.updateMany(found, { $set: { replay: true } })).matchedCount
    },

    webhookLog: async (scope, page) =>
      (await readPage(webhookLog, scoped(scope), page, 'created')).map(fromDocument<LogEntry>),
    async webhookLogEntry(id) {
      const found = await webhookLog.findOne({ _id: id })
      return found ? fromDocument<LogEntry>(found) : undefined
    },
    async deleteWebhookLog(scope) {
      await webhookLog.deleteMany(scoped(scope))
    },

    async pruneSome(before) {
      // Undelivered events have their own copy in the outbox.
      await webhookLog.deleteMany({ created: { $lt: before.log } })
      await deadLetters.deleteMany({ failed: { $lt: before.dead } })
      await events.deleteMany({ created: { $lt: before.events } })
      await purgeDelivered(collections)
      return false
    },
  }
}
