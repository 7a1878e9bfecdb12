import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Change, Head, Write } from './contract.js'
import {
  type Collections,
  type DirectoryDocument,
  insertNew,
  type JournalItem,
  type ResourceDocument,
} from './mongodb-connection.js'

/** Journal text kept in the directory's document, and in each further part: well under the 16 MB of a document. */
const partBytes = 4 * 1024 * 1024
/** A change that another process committed this long ago without finishing it is finished here. */
const takeoverMs = 10_000

/**
 * Changes without multi-document transactions. A change is committed by one write: the directory's document moves from
 * `version` to `version + 1` and takes the whole change, events included, into `commit`. Only then is it spread over the
 * collections, and `commit` emptied. Whoever finds a `commit` left behind by a crash spreads it again: each step may be
 * repeated, and steps carry the version so that a late repeat cannot undo a newer change.
 */
export function createCommitter(collections: Collections) {
  const { directories, resources, memberships, outbox, parts } = collections

  async function commit(directoryId: string, head: Head, change: Change): Promise<boolean> {
    const id = randomUUID()
    const [first = '[]', ...more] = splitJournal(change)
    await insertNew(
      parts,
      more.map((body, index) => ({ _id: `${id}/${String(index).padStart(6, '0')}`, commit: id, body })),
    )
    const sequence = head.sequence + change.events.length
    const record = { id, parts: more.length, body: first, at: Date.now() }
    const { modifiedCount } = await directories.updateOne(
      { _id: directoryId, version: head.version, commit: null },
      { $set: { version: head.version + 1, sequence, commit: record } },
    )
    if (modifiedCount === 0) {
      if (more.length > 0) await parts.deleteMany({ commit: id })
      return false
    }
    await spread(directoryId, head.version + 1, record, [first, ...more])
    return true
  }

  async function head(directoryId: string): Promise<Head | undefined> {
    for (;;) {
      const document = await directories.findOne({ _id: directoryId })
      if (!document) return undefined
      if (!document.commit) return { version: document.version, sequence: document.sequence }
      if (Date.now() - document.commit.at >= takeoverMs) await finish(document)
      else await wait(20)
    }
  }

  /** Finishes a change whose process is gone. */
  async function finish({ _id, version, commit: record }: DirectoryDocument): Promise<void> {
    if (!record) return
    const more = await parts.find({ commit: record.id }).sort({ _id: 1 }).toArray()
    // Fewer parts than committed: another process has finished this change meanwhile.
    if (more.length === record.parts) {
      await spread(_id, version, record, [record.body, ...more.map(part => part.body)])
    }
  }

  async function spread(
    directoryId: string,
    version: number,
    record: NonNullable<DirectoryDocument['commit']>,
    texts: string[],
  ): Promise<void> {
    const events = []
    for (const text of texts) {
      for (const item of JSON.parse(text) as JournalItem[]) {
        if (item.kind === 'event') {
          const { sequence, id, body } = item.event
          events.push({
            _id: eventKey(directoryId, sequence),
            directory: directoryId,
            sequence,
            event: id,
            body,
          })
        } else await write(directoryId, version, item)
      }
    }
    await insertNew(outbox, events)
    await directories.updateOne({ _id: directoryId, 'commit.id': record.id }, { $set: { commit: null } })
    if (record.parts > 0) await parts.deleteMany({ commit: record.id })
  }

  async function write(directory: string, version: number, step: Write): Promise<void> {
    const older = { $lt: version }
    const tombstone = { version, deletedAt: new Date() }
    const $set = tombstone
    const gone = { $set, $unset: { group: '', user: '' } } as const
    switch (step.kind) {
      case 'create':
        return insertNew(resources, [toDocument(directory, version, step)])
      case 'replace': {
        const { _id, ...fields } = toDocument(directory, version, step)
        await resources.updateOne({ _id, version: older }, { $set: fields })
        return
      }
      case 'delete':
        await resources.replaceOne({ _id: step.id, version: older }, tombstone as unknown as ResourceDocument)
        await memberships.updateMany({ group: step.id, version: older }, gone)
        await memberships.updateMany({ user: step.id, version: older }, gone)
        return
      case 'join':
        return insertNew(
          memberships,
          step.userIds.map(user => ({
            _id: `${step.groupId}/${user}/${version}`,
            group: step.groupId,
            user,
            version,
          })),
        )
      case 'leave':
        for (const users of chunks(step.userIds, 1000)) {
          await memberships.updateMany({ group: step.groupId, user: { $in: users }, version: older }, gone)
        }
    }
  }

  return { commit, head }
}

export const eventKey = (directoryId: string, sequence: number): string =>
  `${directoryId}/${String(sequence).padStart(16, '0')}`

/** Splits a list into pieces of at most `size`. */
export function chunks<T>(list: readonly T[], size: number): T[][] {
  const pieces: T[][] = []
  for (let start = 0; start < list.length; start += size) pieces.push(list.slice(start, start + size))
  return pieces
}

function toDocument(
  directory: string,
  version: number,
  step: Extract<Write, { kind: 'create' | 'replace' }>,
): ResourceDocument {
  const { id, directoryId: _, raw, ...fields } = step.resource
  return { _id: id, version, directory, ...fields, terms: [...step.terms], raw: JSON.stringify(raw) }
}

/** The change as JSON texts of bounded size; each text is a list of journal items. */
function splitJournal({ writes, events }: Change): string[] {
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
