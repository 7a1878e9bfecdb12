import { setImmediate as breathe } from 'node:timers/promises'

/** Milliseconds that a loop may block the process. */
const slice = 20

/** Call this between the steps of a long loop: it yields to other requests when the time slice is used up. */
export function createPace(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since <= slice) return
    await breathe()
    since = performance.now()
  }
}
