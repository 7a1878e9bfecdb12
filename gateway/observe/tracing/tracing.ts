/** The events of a request that a trace records. Only used if `tracing` is set. */
import type { RequestHead } from '../../message.js'
import type { Finished, Verdict } from '../../types.js'
import type { Redactor } from '../redact.js'

/** Times are those of `performance.now()`. */
export interface RequestTrace {
  /** The verdict, between these times. */
  decided(startedAt: number, endedAt: number, verdict: Verdict): void
  /** One call to the counter store; `remote` when it was Redis that was asked. */
  storeCalled(startedAt: number, endedAt: number, remote: boolean): void
  /** On to the upstream: flat fields for it, by which its own spans join the trace. */
  forward(): readonly string[]
  /** The upstream's work has ended. */
  forwarded(): void
  /** The request has ended, and its spans with it. */
  finished(event: Finished): void
}

export interface Tracing {
  /** A request has come: its trace is continued, or one is begun. */
  begin(head: RequestHead, redactor: Redactor): RequestTrace
  /** Sends what is left, for some seconds at most. */
  close(): Promise<void>
}
