/** Data and helpers of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Directory, Resource, ResourceType } from '../../../../services/directory/model.js'
import { termsOf } from '../../../../services/directory/scim/filter-query.js'
import type { Head, Store, Write } from '../../../../services/directory/store/contract.js'
import type {
  ClaimRequest,
  Delivery,
  StoredEvent,
} from '../../../../services/directory/store/event-contract.js'

let clock = Date.parse('2026-01-01T00:00:00Z')
export const tick = (): string => new Date(clock++).toISOString()

export const newDirectory = (tenant: string = randomUUID(), product = 'app'): Directory => ({
  id: randomUUID(),
  name: 'Test',
  tenant,
  product,
  type: 'okta-scim-v2',
  logWebhookEvents: false,
  deactivated: false,
  scimSecret: 'sealed',
  webhook: { endpoint: 'https://example.com/', secret: 'sealed' },
  created: tick(),
})

export const newResource = (
  directory: Directory,
  type: ResourceType,
  name: string,
  more: object = {},
): Resource => {
  const created = tick()
  const { id: directoryId, tenant, product } = directory
  const raw = { ...(type === 'user' ? { userName: name } : { displayName: name }), ...more }
  const identity = { type, id: randomUUID(), directoryId, tenant, product }
  return { ...identity, created, modified: created, label: name, raw }
}

export const save = (resource: Resource, kind: 'create' | 'replace' = 'create'): Write => ({
  kind,
  resource,
  terms: termsOf(resource),
})

export async function headOf(store: Store, directory: Directory): Promise<Head> {
  const head = await store.head(directory.id)
  if (!head) throw new Error('the directory is gone')
  return head
}

export async function write(
  store: Store,
  directory: Directory,
  writes: Write[],
  eventCount = 0,
): Promise<void> {
  const head = await headOf(store, directory)
  const events = Array.from({ length: eventCount }, (_, index) => {
    const sequence = head.sequence + index + 1
    return {
      id: randomUUID(),
      sequence,
      created: tick(),
      body: JSON.stringify({ sequence }),
      to: ['default'],
    }
  })
  const made = await store.commit(directory.id, head, { writes, events })
  if (!made) throw new Error('the head was stale')
  await made.durable
}

/** A page that holds everything. */
export const page = { offset: 0, limit: 100 }
export const ids = (resources: Resource[]): string[] => resources.map(resource => resource.id)

/** A claim whose lease ends at once. */
export const forAMoment: ClaimRequest = { now: 1, until: 1, limit: 20 }
export const early = '2026-01-01T00:00:00.000Z'

export const sequences = ({ events }: { events: readonly StoredEvent[] }): number[] =>
  events.map(event => event.sequence)

/** Claims a delivery; throws when there is none. */
export async function claimed(
  store: Store,
  { id }: Pick<Directory, 'id'>,
  request = forAMoment,
): Promise<Delivery> {
  const claim = await store.claimDelivery(id, request)
  if (claim.kind !== 'delivery') throw new Error(`the claim is answered "${claim.kind}"`)
  return claim.delivery
}

/** Commits a change with `count` events. */
export async function tell(
  store: Store,
  { id }: Directory,
  count: number,
  { to = ['default'], created = early } = {},
) {
  const head = await store.head(id)
  if (!head) throw new Error('the directory is gone')
  const events = Array.from({ length: count }, (_, index) => {
    const sequence = head.sequence + index + 1
    return { id: `evt_${randomUUID()}`, sequence, created, body: JSON.stringify({ sequence }) }
  })
  const made = await store.commit(id, head, { writes: [], events: events.map(event => ({ ...event, to })) })
  if (!made) throw new Error('the head was stale')
  await made.durable
  return events
}
