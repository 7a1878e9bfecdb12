import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Filter } from 'mongodb'
import { queueOf } from '../../events/queue.js'
import { batchesOf } from '../../limits.js'
import type { AppliedChange, Head, ResourceChange, Write } from '../contract.js'
import { type Collections, insertIfNew, insertNew } from './connection.js'
import type {
  CommitDocument,
  DirectoryStep,
  EventDocument,
  JournalItem,
  MembershipDocument,
  ResourceDocument,
} from './documents.js'
import { forgiveLeases } from './events.js'

/** Journal text in the commit's document and in each further part: well under the 16 MB limit of a document. */
const partBytes = 4 * 1024 * 1024
/** A pending change of this age is finished by any process that finds it. Two may do so at once without harm. */
const takeoverMs = 2_000

/**
 * Changes without multi-document transactions. A change is committed by inserting one document, events included, under
 * a key of directory and version: of several changes computed from one head only one can be inserted (an insert is
 * atomic on every server; a conditional update is not on FerretDB). Only then is it spread over the collections, and
 * its document emptied. A process that finds a pending change left behind by a crash spreads it again: each step may
 * be repeated, and steps carry the version so that a late repeat cannot undo a newer change.
 */
export function createCommitter(collections: Collections) {
  const { journals, commits, resources, memberships, events, outbox, parts } = collections
  const { directories, removed } = collections

  async function commit(
    directory: string,
    head: Head,
    change: Journaled,
  ): Promise<AppliedChange | undefined> {
    const id = randomUUID()
    const [body = '[]', ...more] = splitJournal(change)
    const part = (text: string, index: number) => ({ _id: `${id}/${padded(index)}`, commit: id, body: text })
    await insertNew(parts, more.map(part))
    const version = head.version + 1
    const sequence = head.sequence + change.events.length
    const pending = { id, parts: more.length, body, at: Date.now() }
    const document = { _id: keyOf(directory, version), directory, version, sequence, pending }
    if (!(await insertIfNew(commits, document))) {
      if (more.length > 0) await parts.deleteMany({ commit: id })
      return undefined
    }
    await spread(document, [body, ...more])
    return { durable: Promise.resolve() }
  }

  async function head(directory: string): Promise<Head | undefined> {
    for (;;) {
      const journal = await journals.findOne({ _id: directory })
      if (!journal) return undefined
      let { version, sequence } = journal
      let next = await commits.findOne({ _id: keyOf(directory, version + 1) })
      while (next && !next.pending) {
        version = next.version
        sequence = next.sequence
        next = await commits.findOne({ _id: keyOf(directory, version + 1) })
      }
      if (!next) return { version, sequence }
      if (Date.now() - (next.pending?.at ?? 0) >= takeoverMs) await finish(next)
      else await wait(20)
    }
  }

  /** Finishes a change whose process has died. */
  async function finish(document: CommitDocument): Promise<void> {
    const { pending } = document
    if (!pending) return
    const more = await parts.find({ commit: pending.id }).sort({ _id: 1 }).toArray()
    // Fewer parts than committed: another process has finished this change meanwhile.
    if (more.length === pending.parts) {
      await spread({ ...document, pending }, [pending.body, ...more.map(part => part.body)])
    }
  }

  async function finishAbandoned(): Promise<void> {
    for (const document of await commits.find({ 'pending.at': { $lt: Date.now() - takeoverMs } }).toArray()) {
      await finish(document)
    }
  }

  async function spread(
    document: CommitDocument & Required<Pick<CommitDocument, 'pending'>>,
    texts: string[],
  ): Promise<void> {
    const { _id, directory, version, sequence, pending } = document
    const forFeed: EventDocument[] = []
    const forWebhook: EventDocument[] = []
    const removals: DirectoryStep[] = []
    for (const text of texts) {
      for (const item of JSON.parse(text) as JournalItem[]) {
        if (item.kind === 'event') {
          const { id: event, to, ...fields } = item.event
          const document = { _id: keyOf(directory, fields.sequence), directory, event, ...fields }
          forFeed.push(document)
          for (const webhook of to) {
            const queue = queueOf(directory, webhook)
            forWebhook.push({ ...document, _id: keyOf(queue, fields.sequence), directory: queue })
          }
        } else if (item.kind === 'removal') removals.push(item)
        else await write(directory, version, item)
      }
    }
    await Promise.all([insertNew(events, forFeed), insertNew(outbox, forWebhook)])
    // Last: once the removal is marked, the purge may delete this very change.
    for (const removal of removals) await write(directory, version, removal)
    await journals.updateOne({ _id: directory, version: { $lt: version } }, { $set: { version, sequence } })
    await commits.updateOne({ _id }, { $set: { deletedAt: new Date() }, $unset: { pending: '' } })
    if (pending.parts > 0) await parts.deleteMany({ commit: pending.id })
  }

  async function write(directory: string, version: number, step: Write | DirectoryStep): Promise<void> {
    const older = { $lt: version }
    switch (step.kind) {
      case 'directory':
        await directories.updateOne(
          { _id: directory, version: { $not: { $gte: version } } },
          { $set: { body: step.directory, version } },
        )
        return
      case 'removal': {
        const { firstUndelivered } = step
        const undelivered = firstUndelivered === undefined ? {} : { firstUndelivered, body: step.directory }
        // The mark is the moment of the removal: everything after it may be repeated, even by another process.
        await removed.updateOne(
          { _id: directory },
          { $set: { purgedAt: null, ...undelivered } },
          { upsert: true },
        )
        await forgiveLeases(collections, directory)
        await directories.deleteOne({ _id: directory })
        return
      }
      case 'create':
        return insertNew(resources, [toDocument(directory, version, step)])
      case 'replace': {
        const { _id, ...fields } = toDocument(directory, version, step)
        await resources.updateOne({ _id, version: older }, { $set: fields })
        return
      }
      case 'delete': {
        const tombstone = { version, deletedAt: new Date() } as ResourceDocument
        await resources.replaceOne({ _id: step.id, version: older }, tombstone)
        await end(version, { group: step.id })
        return end(version, { user: step.id })
      }
      case 'join': {
        const { groupId: group, userIds, displays = {} } = step
        const pair = (user: string) => {
          const display = displays[user]
          const identity = { _id: `${group}/${user}/${version}`, group, user, version }
          return display === undefined ? identity : { ...identity, display }
        }
        return insertNew(memberships, userIds.map(pair))
      }
      case 'display':
        for (const some of batchesOf(Object.entries(step.displays), 1000)) {
          await memberships.bulkWrite(
            some.map(([user, display]) => ({
              updateOne: {
                filter: { group: step.groupId, user, version: older },
                update: { $set: { version, display } },
              },
            })),
            { ordered: false },
          )
        }
        return
      case 'leave':
        for (const users of batchesOf(step.userIds, 1000)) {
          await end(version, { group: step.groupId, user: { $in: users } })
        }
    }
  }

  /** Turns memberships that no newer change has written into tombstones. */
  async function end(version: number, which: Filter<MembershipDocument>): Promise<void> {
    await memberships.updateMany(
      { ...which, version: { $lt: version } },
      { $set: { version, deletedAt: new Date() }, $unset: { group: '', user: '', display: '' } },
    )
  }

  return { commit, head, finishAbandoned }
}
export type Committer = ReturnType<typeof createCommitter>

const padded = (number: number): string => String(number).padStart(16, '0')
const keyOf = (directory: string, number: number): string => `${directory}/${padded(number)}`

function toDocument(
  directory: string,
  version: number,
  step: Extract<Write, { kind: 'create' | 'replace' }>,
): ResourceDocument {
  const { id, directoryId: _, raw, ...fields } = step.resource
  return { _id: id, version, directory, ...fields, terms: [...step.terms], raw: JSON.stringify(raw) }
}

/** A change of users and groups, or of the directory itself. */
type Journaled = Omit<ResourceChange, 'writes'> & { readonly writes: readonly (Write | DirectoryStep)[] }

/** The change as JSON texts of bounded size; each text is a list of journal items. */
function splitJournal({ writes, events }: Journaled): string[] {
  const texts: string[] = []
  let items: string[] = []
  let size = 0
  const flush = (): void => {
    if (items.length > 0) texts.push(`[${items.join(',')}]`)
    items = []
    size = 0
  }
  for (const item of [...writes, ...events.map(event => ({ kind: 'event', event }))]) {
    const text = JSON.stringify(item)
    const bytes = Buffer.byteLength(text)
    if (size + bytes > partBytes) flush()
    items.push(text)
    size += bytes
  }
  flush()
  return texts
}
