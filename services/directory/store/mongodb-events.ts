import type { Collection, Filter, WithId } from 'mongodb'
import type { Page, Scope } from '../model.js'
import type { Claim, DeadLetter, EventStore, LogEntry } from './event-contract.js'
import { type Collections, scoped } from './mongodb-connection.js'
import { fromDocument, type LeaseDocument, toDocument, toEvent } from './mongodb-event-documents.js'
import { leaseId, newestLease, takeLease } from './mongodb-leases.js'

/** Deletes what is left of a removed directory's events, and returns how much. */
export async function purgeEvents(collections: Collections, directory: string): Promise<number> {
  const { events, outbox, leases, deadLetters, webhookLog } = collections
  const deletions = await Promise.all([
    events.deleteMany({ directory }),
    outbox.deleteMany({ directory }),
    leases.deleteMany({ directory }),
    deadLetters.deleteMany({ directory }),
    webhookLog.deleteMany({ directory }),
  ])
  return deletions.reduce((sum, { deletedCount }) => sum + deletedCount, 0)
}

/** A page of a list with the newest first, by the time of that name. */
function newestFirst<T extends { _id: string }>(
  collection: Collection<T>,
  time: 'created' | 'failed',
  scope: Scope,
  { after, offset, limit }: Page,
): Promise<WithId<T>[]> {
  const placed = after && {
    [time]: { $lte: after.created },
    $or: [{ [time]: { $lt: after.created } }, { _id: { $lt: after.id } }],
  }
  const found = collection.find({ ...scoped(scope), ...placed } as Filter<T>)
  return found
    .sort({ [time]: -1, _id: -1 })
    .skip(offset)
    .limit(limit)
    .toArray()
}

/**
 * Events in MongoDB. A lease is a document of its own under the key of directory and fence: taking it is an insert, which
 * is atomic on every server, and all that a delivery writes about its progress is written into its own lease. A process that
 * was stalled while another took over writes where nobody looks any more.
 */
export function createEventStore(collections: Collections, finishAbandoned: () => Promise<void>): EventStore {
  const { journals, leases, outbox, events, deadLetters, webhookLog } = collections

  async function newest(directory: string): Promise<LeaseDocument> {
    const none = { _id: '', directory, fence: 0, until: 0, delivered: 0, attempts: 0, due: 0 }
    return (await newestLease(leases, directory)) ?? none
  }

  /** Only events of changes that are spread completely: of the others some may not be there yet. */
  async function queued(directory: string, delivered: number, limit: number) {
    const journal = await journals.findOne({ _id: directory })
    const range = { $gt: delivered, $lte: journal?.sequence ?? 0 }
    return outbox.find({ directory, sequence: range }).sort({ sequence: 1 }).limit(limit).toArray()
  }

  const claim: EventStore['claimDelivery'] = async (directory, { now, until, limit, fence, hasten }) => {
    const state = await newest(directory)
    const own = state.fence === fence && state.until > now
    if (!own && state.until > now) return { kind: 'held' }
    const waits = state.due > now && !hasten
    const [found, replays] = await Promise.all([
      queued(directory, state.delivered, waits ? 1 : limit),
      deadLetters.find({ directory, replay: true }).sort({ sequence: 1 }).limit(limit).toArray(),
    ])
    if (replays.length === 0 && (found.length === 0 || waits)) {
      if (own) await leases.updateOne({ _id: state._id }, { $set: { until: 0 } })
      if (found.length > 0) return { kind: 'later', at: state.due }
      // A late repeat of a change (see mongodb-commit.ts) may have put back what was delivered.
      await outbox.deleteMany({ directory, sequence: { $lte: state.delivered } })
      return { kind: 'nothing' }
    }
    const lease = own ? await renew(state, until) : await takeLease(leases, state, until)
    if (!lease) return { kind: 'held' }
    const { attempts, due } = state
    const delivery = {
      ...{ fence: lease, attempts, due },
      events: waits ? [] : found.map(toEvent),
      replays: replays.map(fromDocument<DeadLetter>),
    }
    return { kind: 'delivery', delivery } satisfies Claim
  }

  /** The fence, or undefined when the lease is another process's. */
  async function renew({ _id, directory, fence }: LeaseDocument, until: number): Promise<number | undefined> {
    await leases.updateOne({ _id }, { $set: { until } })
    return (await newest(directory)).fence === fence ? fence : undefined
  }

  const report: EventStore['reportDelivery'] = async (directory, fence, done) => {
    if ((await newest(directory)).fence !== fence) return false
    const { delivered, attempts, due, until, dead = [], revived = [], log = [] } = done
    // Before the event counts as done, so that a crash between the two repeats an event and loses none.
    const buried = dead.map(toDocument).map(({ _id, ...fields }) => ({
      // A replay that was wished for has had its attempt.
      updateOne: { filter: { _id }, update: { $set: { ...fields, replay: false } }, upsert: true },
    }))
    if (buried.length > 0) await deadLetters.bulkWrite(buried)
    if (revived.length > 0) await deadLetters.deleteMany({ _id: { $in: [...revived] } })
    const noted = log.map(toDocument).map(({ _id, created, ...fields }) => ({
      updateOne: { filter: { _id }, update: { $set: fields, $setOnInsert: { created } }, upsert: true },
    }))
    if (noted.length > 0) await webhookLog.bulkWrite(noted)
    const progress = { attempts, due, until, ...(delivered === undefined ? {} : { delivered }) }
    const { matchedCount } = await leases.updateOne({ _id: leaseId(directory, fence) }, { $set: progress })
    if (matchedCount === 0) return false
    if (delivered !== undefined) await outbox.deleteMany({ directory, sequence: { $lte: delivered } })
    return true
  }

  return {
    waitingEvents: () => outbox.estimatedDocumentCount(),
    async directoriesWithEvents() {
      await finishAbandoned()
      const waiting = await outbox.distinct('directory')
      const wished = await deadLetters.distinct('directory', { replay: true })
      return [...new Set([...waiting, ...wished])]
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
      (await newestFirst(deadLetters, 'failed', scope, page)).map(fromDocument<DeadLetter>),
    async deadLetter(id) {
      const found = await deadLetters.findOne({ _id: id })
      return found ? fromDocument<DeadLetter>(found) : undefined
    },
    async replay(directory, id) {
      const which = id === undefined ? { directory } : { _id: id, directory }
      return (await deadLetters.updateMany(which, { $set: { replay: true } })).matchedCount
    },

    webhookLog: async (scope, page) =>
      (await newestFirst(webhookLog, 'created', scope, page)).map(fromDocument<LogEntry>),
    async webhookLogEntry(id) {
      const found = await webhookLog.findOne({ _id: id })
      return found ? fromDocument<LogEntry>(found) : undefined
    },
    async deleteWebhookLog(scope) {
      await webhookLog.deleteMany(scoped(scope))
    },

    async pruneSome(before) {
      // Undelivered events have a copy of their own in the outbox.
      await webhookLog.deleteMany({ created: { $lt: before.log } })
      await deadLetters.deleteMany({ failed: { $lt: before.dead } })
      await events.deleteMany({ created: { $lt: before.events } })
      return false
    },
  }
}
