import { setInterval } from 'node:timers'

/** How long the deliveries of a process that died keep others waiting. */
export const leaseMs = 6_000

/** A lease that is renewed while its holder works. */
export interface Lease {
  /** False once it was lost or could not be renewed. */
  held(): boolean
  /** Renews no more. */
  stop(): void
  /** The last report; `release` gives the lease back. False when the lease was lost before, or could not be renewed. Rejects as reports do. */
  end(release: boolean): Promise<boolean>
}

/**
 * Renews by reports: each takes what was done since the one before, so they are sent one after the other, and none after
 * one that failed. `report` is given the time (epoch ms) until which the lease is wanted.
 */
export function keepLease(report: (until: number) => Promise<boolean>): Lease {
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
  // What goes wrong here is told by `end`.
  const timer = setInterval(() => send(leaseMs).catch(() => undefined), leaseMs / 3).unref()
  return {
    held: () => held,
    stop: () => clearInterval(timer),
    end: release => send(release ? 0 : leaseMs),
  }
}
