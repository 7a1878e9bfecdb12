/** A traced request, which reports its events to its trace. Other requests have no cost from tracing. */
import { Fields, type IncomingRequest, type OutgoingResponse, type Takeover } from '../message.js'
import type { RequestTrace } from '../observe/tracing/tracing.js'
import type { Finished, Verdict } from '../types.js'
import type { PipelineParts } from './pipeline.js'
import { RequestContext } from './request-context.js'

/** The fields of W3C Trace Context, in lower case. */
const TRACE_FIELDS = ['traceparent', 'tracestate']

export class TracedRequestContext extends RequestContext {
  readonly #trace: RequestTrace
  override readonly storeCalled: NonNullable<RequestContext['storeCalled']>

  constructor(parts: PipelineParts, req: IncomingRequest, res: OutgoingResponse, trace: RequestTrace) {
    super(parts, req, res)
    this.#trace = trace
    this.storeCalled = (startedAt, remote) => trace.storeCalled(startedAt, performance.now(), remote)
  }

  override settle(verdict: Verdict) {
    this.#trace.decided(this.judgedAt - this.limiterUs / 1000, this.judgedAt, verdict)
    return super.settle(verdict)
  }

  override forward(): void {
    this.#joinUpstream()
    super.forward()
  }

  override upgrade(takeOver: () => Takeover): void {
    this.#joinUpstream()
    super.upgrade(takeOver)
  }

  override onUpstreamEnd(): void {
    this.#trace.forwarded()
    super.onUpstreamEnd()
  }

  protected override record(event: Finished): void {
    super.record(event)
    this.#trace.finished(event)
  }

  /** Replaces the client's trace fields with our own. */
  #joinUpstream(): void {
    const { raw, names } = this.req.fields
    const own = this.#trace.forward()
    const kept = names.flatMap((name, i) => (TRACE_FIELDS.includes(name) ? [] : [i]))
    const fields = new Fields(
      [...kept.flatMap(i => [raw[2 * i] as string, raw[2 * i + 1] as string]), ...own],
      [...kept.map(i => names[i] as string), ...own.filter((_, i) => i % 2 === 0)],
    )
    this.req = { ...this.req, fields }
  }
}
