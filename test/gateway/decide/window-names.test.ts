/** A window's counter is known by its name: whatever windows a policy lists, and in which order, each keeps its own count. */
import fc from 'fast-check'
import t from 'tap'
import type { Ask } from '../../../gateway/decide/store/store.js'
import type { Window } from '../../../gateway/demand.js'
import { places } from './places.js'

/** Small quotas, whose sliding windows keep exact times. */
const POOL: readonly Window[] = [
  { name: 'burst', quota: 5, ms: 1000, algorithm: 'sliding-window' },
  { name: 'sustained', quota: 20, ms: 60_000, algorithm: 'sliding-window' },
  { name: 'hour', quota: 40, ms: 3_600_000, algorithm: 'sliding-window' },
  { name: 'week', quota: 50, ms: 604_800_000, algorithm: 'sliding-window' },
  { name: 'other', quota: 15, ms: 30_000, algorithm: 'sliding-window' },
]

/** A policy's windows, how long after the last step it is asked in ms, and how often. */
const step = fc.record({
  windows: fc.shuffledSubarray([...POOL], { minLength: 1 }),
  gap: fc.constantFrom(0, 1, 400, 1000, 20_000, 60_000, 1_800_000, 90_000_000),
  times: fc.integer({ min: 1, max: 6 }),
})

let keys = 0

for (const { name, runs, open } of places) {
  t.test(`windows by name, ${name}`, async t => {
    const place = await open(t)
    if (place === undefined) return
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 25 }), async steps => {
        keys += 1
        const key = `{names-${keys}}:e`
        /** By name, when each counted request was admitted. */
        const counted = new Map<string, number[]>()
        for (const [i, { windows, gap, times }] of steps.entries()) {
          place.at += gap
          const usedIn = ({ name, ms }: Window) =>
            (counted.get(name) ?? []).filter(at => at + ms > place.at).length
          const ask: Ask = {
            ...{ key, group: 0, onStoreError: 'closed' },
            demand: { kind: 'windows', windows, lease: false },
          }
          const answers = await place.many(i, ask, times)
          const room = Math.min(times, ...windows.map(window => window.quota - usedIn(window)))
          if (answers.filter(({ granted }) => granted).length !== room)
            throw new Error(`step ${i}: not ${room} of ${times}`)
          for (const { name } of windows) {
            counted.set(name, [...(counted.get(name) ?? []), ...Array<number>(room).fill(place.at)])
          }
          const said = answers.at(-1)?.counts.map(({ used }) => used)
          if (String(said) !== String(windows.map(usedIn)))
            throw new Error(`step ${i}: used ${said}, not ${windows.map(usedIn)}`)
        }
      }),
      { numRuns: runs },
    )
    t.pass('each window counted what was admitted under its name')
  })
}
