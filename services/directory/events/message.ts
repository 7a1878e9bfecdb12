import { createHash, randomUUID } from 'node:crypto'
import type { Directory } from '../model.js'
import type { StoredEvent } from '../store/event-contract.js'
import { viewConnection } from './event.js'
import { sentId } from './queue.js'

/** The content of one webhook call: an event, or in batch mode an array of events. */
export interface Message<Event extends StoredEvent = StoredEvent> {
  /** Sent as `webhook-id`; the same events always have the same id, however often they are sent. */
  readonly id: string
  readonly body: string
  readonly events: readonly Event[]
}

/** Most bytes of a batch's body; a single event may be larger. */
const maxBytes = 256 * 1024

/** Packs events for their calls: one by one, or in arrays of at most `batchSize`. */
export function toMessages<Event extends StoredEvent>(
  events: readonly Event[],
  batchSize: number | undefined,
): Message<Event>[] {
  if (batchSize === undefined)
    return events.map(event => ({ id: sentId(event.id), body: event.body, events: [event] }))
  const batches: Event[][] = []
  let bytes = 0
  for (const event of events) {
    const more = Buffer.byteLength(event.body) + 1
    const last = batches.at(-1)
    if (last && last.length < batchSize && bytes + more <= maxBytes) {
      last.push(event)
      bytes += more
    } else {
      batches.push([event])
      bytes = more
    }
  }
  return batches.map(batch => ({
    id: batchId(batch),
    body: `[${batch.map(event => event.body).join(',')}]`,
    events: batch,
  }))
}

const batchId = (events: readonly StoredEvent[]): string =>
  `bat_${createHash('sha256')
    .update(JSON.stringify(events.map(event => sentId(event.id))))
    .digest('base64url')
    .slice(0, 32)}`

/**
 * A message to test a webhook. It is not an event of the directory, so its sequence is 0. `batchSize` as in
 * `toMessages`.
 */
export function testMessage(directory: Directory, batchSize: number | undefined): Message {
  const { id: directory_id, tenant, product } = directory
  const [id, created] = [`evt_${randomUUID()}`, new Date().toISOString()]
  const event = { event: 'webhook.test', tenant, product, directory_id, data: viewConnection(directory) }
  const body = JSON.stringify({ ...event, id, created_at: created, sequence: 0 })
  const [message] = toMessages([{ id, sequence: 0, created, body }], batchSize)
  return message as Message
}
