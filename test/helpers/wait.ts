import { setTimeout as sleep } from 'node:timers/promises'

export { sleep }

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/**
 * Asks again every few milliseconds until `condition` gives a truthy value, and returns that value.
 * A throw counts as "not yet"; after `limit` milliseconds it fails with what was awaited and the last error.
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
