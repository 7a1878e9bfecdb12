/** Processes a submission: decode, look up, type, assemble, validate. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject, JsonValue } from '../../json.js'
import { type FormField, findPath } from '../schema/field.js'
import type { CompiledSchema } from '../schema/schema.js'
import { assembleTraits, keepDeclared, Problems } from './assemble.js'
import { BodyError, decodeBody, type FormEntry } from './decode.js'
import { type FieldError, MAX_ERRORS } from './messages.js'
import { isWithin } from './validate.js'

/** A request body as received, with its Content-Type field. */
export interface Submission {
  readonly contentType: string | undefined
  /** A string is taken as UTF-8. */
  readonly body: Uint8Array | string
}

/** Valid traits, or every problem found. */
export type ParseResult = { readonly traits: JsonObject } | { readonly errors: readonly FieldError[] }

/** Types and validates a submitted form or JSON document. Never throws for anything a client can send. */
export async function parseForm(schema: CompiledSchema, submission: Submission): Promise<ParseResult> {
  return (await readForm(schema, submission)).result
}

/** Like parseForm, with the entries, which are needed to show the form again. */
export async function readForm(
  schema: CompiledSchema,
  { contentType, body }: Submission,
): Promise<{ result: ParseResult; entries: readonly FormEntry[] }> {
  const entries = await readEntries({ contentType, body })
  if ('errors' in entries) return { result: entries, entries: [] }
  const problems = new Problems()
  const traits = assembleTraits(schema.root, entries, problems)
  return { result: judge(schema, traits, problems), entries }
}

/** Types a submission that contains only changes of `stored` traits; the whole is validated when it is merged. */
export async function parsePatch(
  schema: CompiledSchema,
  submission: Submission,
  stored: JsonObject,
): Promise<{ readonly patch: JsonValue } | { readonly errors: readonly FieldError[] }> {
  const entries = await readEntries(submission)
  if ('errors' in entries) return entries
  const problems = new Problems()
  const patch = assembleTraits(schema.root, entries, problems, stored)
  return problems.errors.length > 0 ? { errors: problems.errors } : { patch }
}

async function readEntries({
  contentType,
  body,
}: Submission): Promise<FormEntry[] | { readonly errors: readonly FieldError[] }> {
  try {
    return await decodeBody(contentType, bufferOf(body))
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    return { errors: [error.error] }
  }
}

function bufferOf(body: Uint8Array | string): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

/** Validates traits that came as JSON, keeping only what the schema declares. */
export function parseTraits(schema: CompiledSchema, traits: JsonValue): ParseResult {
  const problems = new Problems()
  const field = schema.root.children.get('traits') as FormField
  return judge(schema, keepDeclared(field, traits, 'traits', problems), problems)
}

/** How stored traits differ from what the schema requires; empty when they do not. */
export function findProblems(schema: CompiledSchema, traits: JsonObject): readonly FieldError[] {
  const result = parseTraits(schema, traits)
  if ('errors' in result) return result.errors
  if (isDeepStrictEqual(result.traits, traits)) return []
  return [
    { path: 'traits', code: 'undeclared', message: 'This has a field that is no longer in the schema.' },
  ]
}

function judge(schema: CompiledSchema, traits: JsonValue, problems: Problems): ParseResult {
  const failed = problems.errors
  // A value that could not be typed is reported once: neither its place nor anything above or below is reported again.
  const found = schema
    .validate({ traits })
    .filter(({ path }) => !failed.some(other => isWithin(path, other.path) || isWithin(other.path, path)))
  const errors = [...failed, ...atLeaves(schema.root, found)]
  return errors.length > 0 ? { errors } : { traits: traits as JsonObject }
}

/** A missing object is reported at its required leaves. */
function atLeaves(root: FormField, errors: readonly FieldError[]): FieldError[] {
  const found: FieldError[] = []
  for (const error of errors) {
    const paths =
      error.code === 'required' ? requiredLeaves(fieldAt(root, error.path), error.path) : [error.path]
    for (const path of paths) {
      if (found.length >= MAX_ERRORS) return found
      found.push({ ...error, path })
    }
  }
  return found
}

function fieldAt(root: FormField, path: string): FormField | undefined {
  return findPath(root, path)?.at(-1)?.field
}

/** A generator, so that no more leaves are computed than are reported. */
function* requiredLeaves(
  field: FormField | undefined,
  path: string,
  open: ReadonlySet<FormField> = new Set(),
): Generator<string> {
  if (field?.kind !== 'object' || field.required.size === 0 || open.has(field)) yield path
  else {
    const inside = new Set(open).add(field)
    for (const name of field.required)
      yield* requiredLeaves(field.children.get(name), `${path}.${name}`, inside)
  }
}
