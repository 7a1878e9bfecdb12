/** What the admin port reports about policy and counters. */
import type { Gateway } from '../../config/schema/gateway.js'
import type { CounterName, Inspected } from '../admin/inspect.js'
import type { OverrideReason } from '../admin/override-reason.js'
import type { Counters } from '../decide/dry-run.js'
import type { HeldSlots, Slots } from '../decide/held-slots.js'
import { countersOf } from './counters.js'
import { policyOf } from './policy.js'
import { type Reset, type ResetOptions, reset } from './reset.js'

export interface InspectOptions extends ResetOptions {
  readonly counters: Counters
  readonly held: HeldSlots
}

/** The most that one answer lists. */
export const MOST_SLOTS = 1000

/** What one process reports. */
export interface Inspection extends Inspected {
  slots(): Slots
  reset(name: CounterName, reason: OverrideReason & { readonly from: string }): Promise<Reset>
}

/** Each answer is about the configuration in force at the time. */
export function inspect(options: InspectOptions): Inspection {
  const { loaded, counters, held } = options
  return {
    policy: of => policyOf(loaded(), of),
    counters: (id, parts) => countersOf(loaded(), counters, id, parts),
    slots: () => held.oldest(MOST_SLOTS),
    reset: (name, reason) => reset(name, reason, options),
  }
}

/** URLs of the embedded services' documents behind the data port at `url`; empty before that port listens. */
export function serviceDocuments({ upstreams }: Gateway, url: string): Record<string, string> {
  if (url === '') return {}
  const served = Object.values(upstreams).flatMap(one => ('embedded' in one ? [one.embedded] : []))
  return Object.fromEntries(
    Object.entries(DOCUMENTS)
      .filter(([service]) => served.includes(service))
      .map(([service, path]) => [service, url + path]),
  )
}

const DOCUMENTS = { directory: '/api/v1/docs' }
