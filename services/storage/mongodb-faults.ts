import { MongoError, MongoServerError } from 'mongodb'
import type { StoreFault } from './health.js'

const outOfDiskSpace = 14031

/**
 * The fault of the server: unreachable, stalled, electing its primary, or out of space. Errors of the driver itself
 * concern the connection; those of the server have a label when they are transient. Now and then the driver passes on
 * the socket's own error, such as EPIPE.
 */
export function mongodbFault(error: unknown): StoreFault | undefined {
  if (error instanceof MongoServerError) {
    if (error.code === outOfDiskSpace) return 'full'
    return error.hasErrorLabel('RetryableWriteError') ? 'away' : undefined
  }
  const isOutage =
    error instanceof MongoError || /^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')
  return isOutage ? 'away' : undefined
}
