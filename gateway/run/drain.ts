/** The end of a gateway: requests under way may finish, then everything is closed, in this order. */
import type { ClosableLog } from '../observe/log.js'
import { onHangup } from './hangup.js'

interface DrainedParts {
  readonly log: ClosableLog
  /** Ends the watch on the files, so that no reload begins. */
  unwatch(): void
  /** Fails `/readyz`, stops listening, lets requests finish up to the deadline `drain` of gateway.yaml. */
  drainGateway(): Promise<void>
  /** The embedded services, which the last requests may still have used. */
  closeServices(): Promise<void>
}

/** Drains on SIGTERM and SIGINT, and then ends the process. Returns what does the same for another signal. */
export function drainOnSignals(parts: DrainedParts): (signal: string) => Promise<void> {
  let draining = false
  const drain = async (signal: string) => {
    if (draining) return
    draining = true
    parts.log.info({ signal }, 'Draining: requests under way may finish')
    parts.unwatch()
    onHangup(() => undefined)
    await parts.drainGateway()
    await parts.closeServices()
    parts.log.info({}, 'Stopped')
    await parts.log.close()
    end(signal)
  }
  process.on('SIGTERM', drain)
  process.on('SIGINT', drain)
  return drain
}

function end(signal: string): void {
  if (signal !== 'SIGHUP') process.exit(0)
  // process.exit() aborts when it cannot reset a terminal that has gone; the signal ends the process without it.
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
