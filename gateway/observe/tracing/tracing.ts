/** The events of a request that a trace records. Only used if `tracing` is set. */
import type { Fields, RequestHead } from '../../message.js'
import type { Finished, Verdict } from '../../verdict.js'
import type { Redactor } from '../redact.js'

/** Times are those of `performance.now()`. */
export interface RequestTrace {
  /** The verdict was reached between these times. */
  decided(startedAt: number, endedAt: number, verdict: Verdict): void
  /** One call to the counter store; `remote` when it went to Redis. */
  storeCalled(startedAt: number, endedAt: number, remote: boolean): void
  /** The request goes on to the upstream. Returns its fields, with those by which the upstream's spans join the trace. */
  forward(fields: Fields): Fields
  /** The upstream has finished. */
  forwarded(): void
  /** The request has ended; ends its spans. */
  finished(event: Finished): void
}

export interface Tracing {
  /** A request has arrived: continues its trace, or begins one. */
  begin(head: RequestHead, redactor: Redactor): RequestTrace
  /** Sends the remaining spans, for a few seconds at most. */
  close(): Promise<void>
}
