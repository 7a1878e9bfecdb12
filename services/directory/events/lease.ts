import { setInterval } from 'node:timers'

/** How long other processes have to wait for the deliveries of a process that died. */
export const leaseMs = 6_000

/**
 * Renews the lease by reports. Each carries what was done since the one before, so they are sent one after the other,
 * and none after one that failed. `report` gets the time (epoch ms) until which the lease is wanted.
 */
export function keepLease(report: (until: number) => Promise<boolean>) {
  let held = true
  let last: Promise<unknown> = Promise.resolve()
  const send = (length: number): Promise<boolean> => {
    const sent = last.then(async () => {
      if (!held) return false
      try {
        held = await report(length === 0 ? 0 : Date.now() + length)
      } catch (error) {
        held = false
        throw error
      }
      return held
    })
    last = sent.catch(() => undefined)
    return sent
  }
  // A failure here makes `end` return false.
  const timer = setInterval(() => send(leaseMs).catch(() => undefined), leaseMs / 3).unref()
  return {
    /** False once the lease was lost or could not be renewed. */
    held: () => held,
    stop: () => clearInterval(timer),
    /**
     * Sends the last report; `release` gives the lease back. False when the lease was lost before. Rejects when the
     * report does.
     */
    end: (release: boolean) => send(release ? 0 : leaseMs),
  }
}
