import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { limits } from '../limits.js'
import type { Directory } from '../model.js'
import type { DirectoryEvent } from '../schemas/events.js'
import type { GroupView, UserView } from '../schemas/people.js'
import { ScimError } from '../scim/error.js'
import type { Head } from '../store/contract.js'
import type { QueuedEvent } from '../store/event-contract.js'
import { receivers } from './webhook.js'

/** What happened, with the state of user and group right after it. */
export type Happening =
  | { readonly event: 'user.created' | 'user.deleted'; readonly data: UserView }
  | { readonly event: 'user.updated'; readonly data: UserView; readonly before: UserView }
  | { readonly event: 'group.created' | 'group.deleted'; readonly data: GroupView }
  | { readonly event: 'group.updated'; readonly data: GroupView; readonly before: GroupView }
  | {
      readonly event: 'group.user_added' | 'group.user_removed'
      readonly data: UserView & { readonly group: GroupView }
    }
  | {
      readonly event: 'dsync.activated' | 'dsync.deactivated' | 'dsync.deleted'
      readonly data: ConnectionView
    }

/** What the events of a directory itself carry. */
export interface ConnectionView {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly deactivated: boolean
}

/** A directory as its own events show it. */
export const viewConnection = ({ id, name, type, deactivated }: Directory): ConnectionView => ({
  id,
  name,
  type,
  deactivated,
})

/** In order; long sequences are generated one by one on demand. */
export type Happenings = Iterable<Happening> | AsyncIterable<Happening>

/**
 * Numbers the happenings on from the head, writes each as the JSON text to deliver, and names the webhooks that
 * receive it. Throws 413 when the events of one change are too large.
 */
export async function toEvents(
  directory: Directory,
  head: Head,
  happenings: Happenings,
  now: string,
): Promise<QueuedEvent[]> {
  const { id: directory_id, tenant, product } = directory
  const events: QueuedEvent[] = []
  let bytes = 0
  for await (const happening of happenings) {
    const { event, data } = happening
    const id = `evt_${randomUUID()}`
    const sequence = head.sequence + events.length + 1
    const changed =
      'before' in happening ? { previous_attributes: previousAttributes(happening.before, data) } : {}
    const fields = { event, tenant, product, directory_id, data, ...changed, id, created_at: now, sequence }
    const body = JSON.stringify(fields)
    bytes += Buffer.byteLength(body)
    if (bytes > limits.eventBytes) {
      const detail = `The webhook events of this change exceed ${limits.eventBytes} bytes: name fewer members in one request.`
      throw new ScimError(413, detail, 'tooMany')
    }
    events.push({ id, sequence, created: now, body, to: receivers(directory, event) })
  }
  return events
}

/** Receives each event after its change is stored; the service waits for it to return. */
export type EventCallback = (event: DirectoryEvent) => unknown

type Attributes = Readonly<Record<string, unknown>>

/**
 * What an update changed, with the previous values: the fields of the view, and the attributes of `raw` that
 * differ. An attribute that did not exist is null.
 */
function previousAttributes(before: object, after: object): Attributes {
  const { raw: oldRaw, ...old } = before as Attributes
  const { raw: newRaw, ...now } = after as Attributes
  const raw = differing(oldRaw as Attributes, newRaw as Attributes)
  return { ...differing(old, now), ...(Object.keys(raw).length > 0 ? { raw } : {}) }
}

function differing(before: Attributes, after: Attributes): Attributes {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const changed = [...names].filter(name => !isDeepStrictEqual(before[name], after[name]))
  return Object.fromEntries(changed.map(name => [name, before[name] ?? null]))
}
