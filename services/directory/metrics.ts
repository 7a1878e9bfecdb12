/** The series `directory_*`, in the Prometheus text format. Only this file imports prom-client. */
import { Counter, Gauge, Registry } from 'prom-client'
import type { StoreHealth } from '../storage/health.js'
import type { EventStore } from './store/event-contract.js'

/** The outcome of the events in a webhook call: `failed` ones are retried until they are `dead`. */
export type CallOutcome = 'delivered' | 'failed' | 'dead'

export type DirectoryMetrics = ReturnType<typeof createMetrics>

/** Label values come from closed lists, never from a tenant, a directory or client input. */
export function createMetrics(store: Pick<EventStore, 'waitingEvents'>, health: Pick<StoreHealth, 'text'>) {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    name: 'directory_scim_requests_total',
    help: 'SCIM requests answered, by method and status.',
    labelNames: ['method', 'code'],
    registers,
  })
  const events = new Counter({
    name: 'directory_events_total',
    help: 'Webhook events, by the outcome of their delivery: delivered, failed (to be retried), dead (given up).',
    labelNames: ['outcome'],
    registers,
  })
  new Gauge({
    name: 'directory_events_waiting',
    help: 'Events that wait for delivery, in all directories; NaN while the database cannot be reached.',
    registers,
    async collect() {
      this.set(await store.waitingEvents().catch(() => Number.NaN))
    },
  })
  return {
    scimAnswered: (method: string, code: number) => requests.inc({ method, code }),
    /** Counts that many events with the outcome. */
    called: (outcome: CallOutcome, count: number) => events.inc({ outcome }, count),
    text: async () => (await registry.metrics()) + health.text(),
  }
}
