/** The counter stores of a whole gateway, for behaviour that must be the same on each. */
import type { Test } from 'tap'
import { redisUrl } from './redis.js'

export interface TestedStore {
  readonly name: 'in process' | 'on Redis'
  /** Its name in decision records. */
  readonly recorded: 'memory' | 'redis'
  /**
   * Lines of gateway.yaml for unused counters, or undefined after reporting the test as skipped (a failure in CI).
   */
  settings(t: Test): Promise<string | undefined>
}

export const stores: readonly TestedStore[] = [
  { name: 'in process', recorded: 'memory', settings: async () => '' },
  {
    name: 'on Redis',
    recorded: 'redis',
    async settings(t) {
      const url = await redisUrl(t)
      return url && redisSettings(url)
    },
  },
]

/** Tests a behaviour on each store, in parallel with the other tests of `t` when that has several `jobs`. */
export function onEachStore(
  t: Test,
  behaviour: string,
  body: (t: Test, store: TestedStore) => Promise<void>,
): void {
  for (const store of stores) {
    t.test(`${behaviour}, ${store.name}`, { buffered: true }, async t => {
      if ((await store.settings(t)) !== undefined) await body(t, store)
    })
  }
}

/** Lines of gateway.yaml to count on that Redis. On a busy machine a slow Redis must not trigger the fallback. */
export const redisSettings = (url: string): string => `redis: ${url}\nstore: { deadline: 5s }`
