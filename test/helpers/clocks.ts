import type { Test } from 'tap'

/**
 * From `start` on, the test controls the clocks that a gateway in this process and its counters read; real at its end.
 */
export function holdClocks(t: Test, start: number): { ms: number } {
  const real = { date: Date.now, performance: performance.now }
  const clock = { ms: start }
  Date.now = () => clock.ms
  performance.now = () => 1000 + clock.ms - start
  t.teardown(() => {
    Date.now = real.date
    performance.now = real.performance
  })
  return clock
}
