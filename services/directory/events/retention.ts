import { setInterval } from 'node:timers'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { ServiceLog } from '../../log.js'
import type { Store } from '../store/contract.js'
import { retentionMs } from './retry.js'

const hour = 60 * 60 * 1000

/**
 * Deletes expired event data at least every hour: log entries after `logTtlMs`, feed events and dead letters after 30
 * days.
 */
export function startRetention(store: Store, logTtlMs: number, log: ServiceLog): { close(): Promise<void> } {
  let closed = false
  let running: Promise<void> | undefined
  const before = (age: number): string => new Date(Date.now() - age).toISOString()

  const prune = async (): Promise<void> => {
    try {
      const bounds = { log: before(logTtlMs), events: before(retentionMs), dead: before(retentionMs) }
      while (!closed && (await store.pruneSome(bounds))) await yieldToOthers()
    } catch (error) {
      log.error({ err: (error as Error).message }, 'old events cannot be deleted')
    } finally {
      running = undefined
    }
  }
  const begin = (): void => {
    running ??= prune()
  }
  const timer = setInterval(begin, Math.min(hour, Math.max(1000, logTtlMs / 2))).unref()
  begin()
  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
