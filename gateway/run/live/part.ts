/** The live data of one process. */
import type { LiveProcess } from '../../admin/live-snapshot.js'
import type { HeldSlots, SlotsOfRule } from '../../decide/held-slots.js'
import type { WaitingOfRule } from '../../decide/wait/queue-map.js'
import type { WaitQueues } from '../../decide/wait/wait-queues.js'
import type { Live, LivePart } from '../../observe/live/live.js'
import type { ForwardingWatch, UntrustedForwarding } from '../../observe/untrusted-forwarding.js'
import type { BackendState } from '../upstreams.js'

/** Plain data. */
export interface ProcessPart extends LivePart {
  readonly slots: readonly SlotsOfRule[]
  readonly waiting: readonly WaitingOfRule[]
  readonly backends: readonly BackendState[]
  readonly untrusted_forwarding: UntrustedForwarding | null
  /** Whether the counter store is unavailable, and since when, in milliseconds since the epoch. */
  readonly store: { readonly away: boolean; readonly since: number }
  readonly process: LiveProcess
}

export interface PartSources {
  readonly live: Live
  readonly held: HeldSlots
  readonly queues: Pick<WaitQueues, 'byRule'>
  backends(): readonly BackendState[]
  store(): { readonly away: boolean; readonly since: Date }
  readonly forwarding: Pick<ForwardingWatch, 'report'>
  readonly loopDelay: { readonly delayMs: number }
}

/** Returns a function that reports the current data. */
export function partOf({
  live,
  held,
  queues,
  backends,
  store,
  loopDelay,
  forwarding,
}: PartSources): () => ProcessPart {
  const started_at = new Date(Date.now() - process.uptime() * 1000).toISOString()
  return () => {
    const { away, since } = store()
    return {
      ...live.report(),
      slots: held.byRule(),
      waiting: queues.byRule(),
      backends: backends(),
      untrusted_forwarding: forwarding.report(),
      store: { away, since: since.getTime() },
      process: {
        pid: process.pid,
        started_at,
        loop_delay_ms: Math.round(loopDelay.delayMs),
        rss_bytes: process.memoryUsage.rss(),
      },
    }
  }
}
