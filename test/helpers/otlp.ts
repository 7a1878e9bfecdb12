/** A receiver of traces by OTLP over HTTP in JSON (OTLP 1.x, "OTLP/HTTP"), like a collector. */
import type { Test } from 'tap'
import { startApp } from './http.js'

export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  /** 2 is an error. */
  readonly status: { readonly code?: number; readonly message?: string }
}

export interface OtlpReceiver {
  readonly url: string
  readonly spans: ReceivedSpan[]
  /** Attributes of the senders. */
  readonly resources: Readonly<Record<string, unknown>>[]
  /** All bodies received, as text. */
  raw: string
  /** The status of its responses from now on. */
  status: number
}

interface Written {
  readonly key: string
  readonly value: Value
}
type Value = Readonly<Record<string, unknown>> & {
  readonly arrayValue?: { readonly values: readonly Value[] }
}
type WrittenSpan = Omit<ReceivedSpan, 'attributes' | 'start' | 'end'> & {
  readonly attributes: readonly Written[]
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}
interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Written[] }
    readonly scopeSpans: readonly { readonly spans: readonly WrittenSpan[] }[]
  }[]
}

export async function otlpReceiver(t: Test): Promise<OtlpReceiver> {
  const receiver = {
    url: '',
    spans: [] as ReceivedSpan[],
    resources: [] as Record<string, unknown>[],
    raw: '',
    status: 200,
  }
  receiver.url = await startApp(t, async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    res.writeHead(req.url === '/v1/traces' ? receiver.status : 404, { 'content-type': 'application/json' })
    res.end('{}')
    if (receiver.status !== 200) return
    const text = Buffer.concat(chunks).toString()
    receiver.raw += text
    for (const { resource, scopeSpans } of (JSON.parse(text) as Body).resourceSpans) {
      receiver.resources.push(attributesOf(resource.attributes))
      for (const { spans } of scopeSpans) receiver.spans.push(...spans.map(spanOf))
    }
  })
  return receiver
}

function spanOf({ attributes, startTimeUnixNano, endTimeUnixNano, ...span }: WrittenSpan): ReceivedSpan {
  const [start, end] = [BigInt(startTimeUnixNano), BigInt(endTimeUnixNano)]
  return { ...span, start, end, attributes: attributesOf(attributes) }
}

function attributesOf(written: readonly Written[]): Record<string, unknown> {
  return Object.fromEntries(written.map(({ key, value }) => [key, plainOf(value)]))
}

function plainOf({ arrayValue, ...plain }: Value): unknown {
  return arrayValue === undefined ? Object.values(plain)[0] : arrayValue.values.map(plainOf)
}
