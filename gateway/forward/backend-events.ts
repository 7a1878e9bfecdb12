/** What happens to the addresses of an upstream, for the log and the metrics. */
import type { Backend } from './backend.js'
import type { CountRetry } from './retries.js'

/** Receives events of an upstream's backends. Errors may name their addresses. */
export interface BackendEvents {
  /** No connection could be opened. */
  unreachable(backend: Backend, error: Error): void
  /** The backend is avoided from now on. */
  ejected?(backend: Backend, error: Error): void
  /** The backend responds again. */
  returned?(backend: Backend): void
  /** A health check has ended; `error` says why it has failed. */
  checked?(backend: Backend, error: Error | undefined): void
  /** Health checks say that the backend is well again, or why it is not from now on. */
  healthChanged?(backend: Backend, error: Error | undefined): void
  /** A request is sent again, or is not because too many were. */
  retried?: CountRetry
  /** The answer to a health check is longer than what is read of it. */
  checkTooLong?(backend: Backend, bytes: number): void
}
