import { randomUUID } from 'node:crypto'
import type { Directory } from '../model.js'
import type { GroupView } from '../scim/group.js'
import type { UserView } from '../scim/user.js'
import type { Head, QueuedEvent } from '../store/contract.js'

/** What happened, with the state of user and group right after it. */
export type Happening =
  | { readonly event: 'user.created' | 'user.updated' | 'user.deleted'; readonly data: UserView }
  | { readonly event: 'group.created' | 'group.updated' | 'group.deleted'; readonly data: GroupView }
  | {
      readonly event: 'group.user_added' | 'group.user_removed'
      readonly data: UserView & { readonly group: GroupView }
    }

/** Numbers the happenings on from the head and writes each as the JSON text that is delivered (design section 11). */
export function toEvents(
  directory: Directory,
  head: Head,
  happenings: readonly Happening[],
  now: string,
): QueuedEvent[] {
  const { id: directory_id, tenant, product } = directory
  return happenings.map(({ event, data }, index) => {
    const id = `evt_${randomUUID()}`
    const sequence = head.sequence + index + 1
    const body = { event, tenant, product, directory_id, data, id, created_at: now, sequence }
    return { id, sequence, body: JSON.stringify(body) }
  })
}
