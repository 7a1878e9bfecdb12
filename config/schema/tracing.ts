/** The shape of `tracing` in gateway.yaml. */
import { type Static, Type } from 'typebox'
import { Strict } from './fields.js'

const Shape = Strict(
  {
    otlp: Type.String({
      format: 'http-origin',
      maxLength: 2048,
      expected: 'an http:// or https:// address without path, query or credentials',
      description:
        'Where spans are sent by OTLP over HTTP (to /v1/traces there), such as http://127.0.0.1:4318.',
    }),
    share: Type.Number({
      default: 0.01,
      minimum: 0,
      maximum: 1,
      description:
        'Share of requests that begin a trace here, from 0 to 1. Requests that already belong to a trace follow it. 0: no tracing.',
    }),
  },
  { description: "Traces of requests, made with OpenTelemetry's own packages. A change needs a restart." },
)

export type TracingSettings = Static<typeof Shape>

export const Tracing = Type.Optional(Shape)
