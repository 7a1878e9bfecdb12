/**
 * Traces by OpenTelemetry's SDK, sent by OTLP over HTTP. The only user of its packages; loaded only when `tracing` is
 * set.
 */
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapSetter,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import { Fields, type RequestHead } from '../../message.js'
import type { Log } from '../../types.js'
import type { Finished, Verdict } from '../../verdict.js'
import type { Redactor } from '../redact.js'
import {
  arrivalAttributes,
  decisionAttributes,
  requestAttributes,
  routeOf,
  spanName,
  upstreamAttributes,
} from './attributes.js'
import type { RequestTrace, Tracing } from './tracing.js'

export interface OtelSettings {
  /** Scheme, host and port of the receiver. */
  readonly otlp: string
  /** Share of the requests that begin a trace here, from 0 to 1. */
  readonly share: number
  /** Version of Sluice. */
  readonly version: string
}

/** Spans that may wait to be sent; further ones are dropped. */
const MOST_WAITING = 2048
/** Timeout of one export, and of sending what is left on close. */
const SEND_MS = 5000

const propagator = new W3CTraceContextPropagator()
const getter: TextMapGetter<Fields> = {
  get: (fields, name) => fields.get(name),
  keys: fields => [...fields.names],
}
const setter: TextMapSetter<string[]> = {
  set(fields, name, value) {
    // A tracestate without a valid member would be sent empty, which should not be done (W3C Trace Context, 'tracestate
    // Header').
    if (value !== '') fields.push(name, value)
  },
}

export function openOtel({ otlp, share, version }: OtelSettings, log: Log): Tracing {
  const exporter = new FailureReportingExporter(
    new OTLPTraceExporter({ url: `${new URL(otlp).origin}/v1/traces`, timeoutMillis: SEND_MS }),
    log,
  )
  const processor = new BatchSpanProcessor(exporter, {
    maxQueueSize: MOST_WAITING,
    exportTimeoutMillis: SEND_MS,
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'sluice', 'service.version': version }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('sluicegate', version)
  return {
    begin: (head, redactor) => new SpansOfRequest(tracer, head, redactor),
    async close() {
      const patience = new Promise(resolve => setTimeout(resolve, SEND_MS).unref())
      await Promise.race([provider.shutdown().catch(() => undefined), patience])
    },
  }
}

/** The spans of one request; an unsampled one costs only its ids. */
class SpansOfRequest implements RequestTrace {
  readonly #tracer: Tracer
  readonly #redactor: Redactor
  readonly #context: Context
  readonly #server: Span
  #upstream: Span | undefined
  #upstreamEndedAt: number | undefined
  readonly #storeCalls: { readonly startTime: number; readonly endedAt: number; readonly remote: boolean }[] =
    []

  constructor(tracer: Tracer, head: RequestHead, redactor: Redactor) {
    this.#tracer = tracer
    this.#redactor = redactor
    const parent = propagator.extract(ROOT_CONTEXT, head.fields, getter)
    const attributes = arrivalAttributes(head)
    const options = { kind: SpanKind.SERVER, startTime: performance.now(), attributes }
    this.#server = tracer.startSpan(spanName(head.method), options, parent)
    this.#context = trace.setSpan(parent, this.#server)
  }

  storeCalled(startTime: number, endedAt: number, remote: boolean): void {
    if (this.#server.isRecording()) this.#storeCalls.push({ startTime, endedAt, remote })
  }

  decided(startTime: number, endedAt: number, verdict: Verdict): void {
    if (!this.#server.isRecording()) return
    const attributes = decisionAttributes(verdict)
    const span = this.#tracer.startSpan('decide', { startTime, attributes }, this.#context)
    const inside = trace.setSpan(this.#context, span)
    for (const call of this.#storeCalls) {
      const kind = call.remote ? SpanKind.CLIENT : SpanKind.INTERNAL
      const system = call.remote ? { 'db.system.name': 'redis' } : {}
      const options = {
        kind,
        startTime: call.startTime,
        attributes: { 'db.operation.name': 'take', ...system },
      }
      this.#tracer.startSpan('take', options, inside).end(call.endedAt)
    }
    span.end(endedAt)
  }

  forward(fields: Fields): Fields {
    const own: string[] = []
    if (this.#server.isRecording()) {
      const options = { kind: SpanKind.CLIENT, startTime: performance.now() }
      this.#upstream = this.#tracer.startSpan('upstream', options, this.#context)
    }
    const context =
      this.#upstream === undefined ? this.#context : trace.setSpan(this.#context, this.#upstream)
    propagator.inject(context, own, setter)
    return replaceTraceFields(fields, own)
  }

  forwarded(): void {
    this.#upstreamEndedAt ??= performance.now()
  }

  finished(event: Finished): void {
    const server = this.#server
    if (!server.isRecording()) return
    const upstream = this.#upstream
    if (upstream !== undefined) {
      upstream.updateName(spanName(event.method)).setAttributes(upstreamAttributes(event, this.#redactor))
      // By the semantic conventions a 4xx is an error on a client span but not on a server span.
      if (event.status >= 400 || event.error !== undefined) upstream.setStatus(failed(event))
      upstream.end(this.#upstreamEndedAt)
    }
    const route = routeOf(event)
    if (route !== '') server.updateName(`${spanName(event.method)} ${route}`)
    server.setAttributes(requestAttributes(event, this.#redactor))
    if (event.status >= 500 || event.error === 'answer-cut') server.setStatus(failed(event))
    server.end()
  }
}

/** The fields of W3C Trace Context, in lower case. */
const TRACE_FIELDS = ['traceparent', 'tracestate']

/** The client's trace fields are replaced by our own, a flat list. */
function replaceTraceFields({ raw, names }: Fields, own: readonly string[]): Fields {
  const others = names.flatMap((name, i) => (TRACE_FIELDS.includes(name) ? [] : [i]))
  return new Fields(
    [...others.flatMap(i => [raw[2 * i] as string, raw[2 * i + 1] as string]), ...own],
    [...others.map(i => names[i] as string), ...own.filter((_, i) => i % 2 === 0)],
  )
}

/** The cause may contain internal addresses of the operator, as it does in the log. */
function failed({ cause }: Finished) {
  return { code: SpanStatusCode.ERROR, ...(cause !== undefined && { message: cause }) }
}

/** Logs once when spans cannot be sent, and once when they can again; requests are never affected. */
class FailureReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #log: Log
  #isFailing = false

  constructor(exporter: SpanExporter, log: Log) {
    this.#exporter = exporter
    this.#log = log
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, result => {
      const isFailing = result.code === ExportResultCode.FAILED
      if (isFailing && !this.#isFailing) {
        this.#log.warn({ reason: result.error?.message }, 'Traces cannot be sent: they are dropped')
      } else if (!isFailing && this.#isFailing) this.#log.info({}, 'Traces are sent again')
      this.#isFailing = isFailing
      done({ code: ExportResultCode.SUCCESS })
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }
}
