/** Opens tracing if it is configured: only then are its packages loaded. */
import type { TracingSettings } from '../../config/schema/tracing.js'
import { Failure } from '../errors.js'
import type { Tracing } from '../observe/tracing/tracing.js'
import type { Log } from '../types.js'
import { version } from './version.js'

const INSTALL =
  'npm install @opentelemetry/api@1.9 @opentelemetry/core@2 @opentelemetry/resources@2 @opentelemetry/sdk-trace-base@2 @opentelemetry/exporter-trace-otlp-http@0.223'

/** Undefined when nothing is to be traced. @throws {Failure} when packages are missing */
export async function openTracing(
  settings: TracingSettings | undefined,
  log: Log,
): Promise<Tracing | undefined> {
  if (settings === undefined || settings.share === 0) return undefined
  const { openOtel } = await import('../observe/tracing/otel.js').catch(error => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Failure(`tracing needs OpenTelemetry's packages, which are not installed: ${INSTALL}`, {
      cause: error,
    })
  })
  return openOtel({ ...settings, version: version() }, log)
}
