/** Work in steps, each of which is short enough for the event loop. */
import { setImmediate } from 'node:timers/promises'

/** Between two steps others may run. */
export async function inSteps<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
    await setImmediate()
  }
}

/** All steps without a pause. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}
