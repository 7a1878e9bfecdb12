import { setImmediate as breathe } from 'node:timers/promises'

/** Milliseconds that one walk may keep the process for itself. */
const slice = 20

/** To be called between the steps of a long walk: it gives way to other requests once a slice is used up. */
export function createPace(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since <= slice) return
    await breathe()
    since = performance.now()
  }
}
