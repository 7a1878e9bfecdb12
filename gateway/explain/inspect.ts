/** What the admin port reports about policy and counters. */
import type { Gateway } from '../../config/schema/gateway.js'
import type { CounterName, Inspected, PolicyOf } from '../admin/inspect.js'
import type { OverrideReason } from '../admin/override-reason.js'
import type { Counters } from '../decide/dry-run.js'
import type { HeldSlots } from '../decide/held-slots.js'
import { countersOf } from './counters.js'
import type { Parts } from './facts.js'
import { policyOf } from './policy.js'
import { type Reset, type ResetOptions, reset } from './reset.js'

export interface InspectOptions extends ResetOptions {
  readonly counters: Counters
  readonly held: HeldSlots
}

/** The most that one answer lists. */
export const MOST_SLOTS = 1000

/** Each answer is about the configuration in force at the time. */
export function inspect(options: InspectOptions) {
  const { loaded, counters, held } = options
  return {
    policy: (of: PolicyOf) => policyOf(loaded(), of),
    counters: (id: string, parts: Parts) => countersOf(loaded(), counters, id, parts),
    slots: () => held.oldest(MOST_SLOTS),
    reset: (name: CounterName, reason: OverrideReason & { readonly from: string }): Promise<Reset> =>
      reset(name, reason, options),
  } satisfies Inspected
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
