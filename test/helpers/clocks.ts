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

/**
 * What sets the clock and the time zone of this process (`npm run test:dates`), and nothing else of its environment: for
 * child processes that get one of their own.
 */
export function clockOfTests(): Record<string, string | undefined> {
  const settings = Object.entries(process.env).filter(([name]) =>
    /^(?:TZ|LD_PRELOAD|FAKETIME\w*)$/.test(name),
  )
  return Object.fromEntries(settings)
}
