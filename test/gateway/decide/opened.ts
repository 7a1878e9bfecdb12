/** A counter store as the gateway opens it, on a real Redis, and what it logs. */
import type { Test } from 'tap'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'

export function minute(key: string, quota: number): Ask {
  const windows = [{ name: 'sustained', quota, ms: 60_000, algorithm: 'sliding-window' }] as const
  return { key, demand: { kind: 'windows', windows, lease: false }, group: 0, onStoreError: 'local' }
}

export function meter(key: string, quota: number): Ask {
  const demand = { kind: 'meter', quota, ms: 60_000, blockMs: 600_000 } as const
  return { key, demand, group: 0, onStoreError: 'closed' }
}

export async function storeOn(t: Test, redis: string, deadline = 1000) {
  const lines: { msg: string; node?: string }[] = []
  const write = (fields: object, msg: string) => void lines.push({ msg, ...fields })
  const log = { debug() {}, info: write, warn: write, error: write }
  const changes: boolean[] = []
  const hooks = { failed() {}, late() {}, awayChanged: (away: boolean) => void changes.push(away) }
  const { store, credit, forget } = await openStore(
    { redis, deadline, instances: 1, onError: 'local' },
    log,
    hooks,
  )
  t.teardown(() => store.close())
  const ask = async (...asks: Ask[]): Promise<Answer[]> => store.take(asks, `holder ${Math.random()}`)
  return { ask, store, credit, forget, lines, changes }
}
