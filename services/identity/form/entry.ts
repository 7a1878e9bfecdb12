/** The form into which every media type is decoded, and its limits (docs/forms.md). */
import type { FieldError } from './errors.js'
import type { JsonValue } from './json.js'

/** One submitted name with its text, a JSON value that keeps its type, or a chosen file. */
export type FormEntry =
  | { readonly name: string; readonly text: string }
  | { readonly name: string; readonly json: JsonValue }
  | { readonly name: string; readonly file: true }

export const MAX_BODY_BYTES = 1024 * 1024
export const MAX_ENTRIES = 5000
export const MAX_NAMES = 1000

/** A body that cannot be read at all. */
export class BodyError extends Error {
  readonly error: FieldError
  constructor(code: string, message: string) {
    super(message)
    this.error = { path: '', code, message }
  }
}

export function tooManyEntries(): BodyError {
  return new BodyError('too_large', `The form has more than ${MAX_ENTRIES} entries.`)
}
