import { setTimeout as sleep } from 'node:timers/promises'

export { sleep }

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/**
 * Checks every few milliseconds until `condition` returns a truthy value, and returns that value.
 * A throw counts as "not yet"; after `limit` milliseconds it fails with `awaited` and the last error.
 */
export async function waitUntil<T>(
  awaited: string,
  condition: () => T | Promise<T>,
  limit = 10_000,
): Promise<Truthy<T>> {
  const deadline = performance.now() + limit
  let cause: unknown
  for (;;) {
    try {
      const value = await condition()
      if (value) return value as Truthy<T>
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadline) throw new Error(`${awaited}: not within ${limit} ms`, { cause })
    await sleep(10)
  }
}

/**
 * Whether `work` ends within `ms`, told in short steps: each needs a turn of the event loop, so a busy machine delays
 * them at least as much as a timer of the code under test.
 */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let hasEnded = false
  const end = () => {
    hasEnded = true
  }
  work.then(end, end)
  for (let left = ms; left > 0 && !hasEnded; left -= 10) await sleep(10)
  return hasEnded
}

class TooSlow extends Error {}

/**
 * The result of `work` if it took less than `ms`, which it does unless the machine is busy. Only inside `unhurried`.
 */
export async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  const took = performance.now() - start
  if (took > ms) throw new TooSlow(`took ${Math.round(took)} ms instead of ${ms} ms`)
  return result
}

/** Runs `body` again from its beginning while any `within` was too slow, five times at most. */
export async function unhurried(body: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await body()
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === 5) throw error
    }
  }
}
