/** The package's `./identity`: the form parser for embedders, and the embedded identity service. */
import type { IdentityStartOptions, Running } from './service.js'

export type { JsonObject, JsonValue } from '../json.js'
export type { ServiceLog as Log } from '../log.js'
export type { FieldError } from './decode/messages.js'
export { type ParseResult, parseForm, type Submission } from './decode/parse.js'
export { SchemaError } from './schema/document.js'
export { type CompiledSchema, compileSchema } from './schema/schema.js'
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
