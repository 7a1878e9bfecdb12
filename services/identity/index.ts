/** The package's `./identity`: the form parser for embedders, and the embedded identity service. */
import type { IdentityStartOptions, Running } from './service.js'

export type { ServiceLog as Log } from '../log.js'
export type { FieldError } from './form/errors.js'
export type { JsonObject, JsonValue } from './form/json.js'
export { type ParseResult, parseForm, type Submission } from './form/parse.js'
export { type CompiledSchema, compileSchema } from './form/schema.js'
export { SchemaError } from './form/schema-document.js'
export type { IdentityStartOptions as StartOptions, Running } from './service.js'

/**
 * Starts the service; see StartOptions for its settings. Throws an Error with a sentence when the schema or the store
 * cannot be used.
 */
export async function start(options: IdentityStartOptions): Promise<Running> {
  // Callers that only parse forms load neither the server nor the stores.
  const service = await import('./service.js')
  return service.startService(options)
}

/** Throws as `start` would when a setting is invalid, without opening the store. */
export async function checkSettings(env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await import('./settings.js')
  settings.checkSettings(env)
}
