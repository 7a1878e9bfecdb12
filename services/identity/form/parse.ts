/** The whole way of a submission: decode, look up, type, assemble, validate (design section 10). */
import { assembleTraits } from './assemble.js'
import { keepDeclared, Problems } from './declared.js'
import { decodeBody } from './decode.js'
import { BodyError, type Entry } from './entry.js'
import { type FieldError, MAX_ERRORS } from './errors.js'
import { type Field, findPath } from './field.js'
import type { JsonObject, JsonValue } from './json.js'
import type { CompiledSchema } from './schema.js'
import { isWithin } from './validate.js'

/** A request body as it came, with its Content-Type field. */
export interface Submission {
  readonly contentType: string | undefined
  readonly body: Buffer
}

/** Valid traits, or every problem found. */
export type ParseResult = { readonly traits: JsonObject } | { readonly errors: readonly FieldError[] }

/** Types and validates a submitted form or JSON document. Never throws for anything a client can send. */
export async function parseForm(schema: CompiledSchema, submission: Submission): Promise<ParseResult> {
  return (await readForm(schema, submission)).result
}

/** As parseForm, with the entries, which a form that is shown again needs. */
export async function readForm(
  schema: CompiledSchema,
  { contentType, body }: Submission,
): Promise<{ result: ParseResult; entries: readonly Entry[] }> {
  let entries: readonly Entry[]
  try {
    entries = await decodeBody(contentType, body)
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    return { result: { errors: [error.error] }, entries: [] }
  }
  const problems = new Problems()
  const traits = assembleTraits(schema.root, entries, problems)
  return { result: judge(schema, traits, problems), entries }
}

/** Validates traits that came as JSON, keeping only what the schema declares. */
export function parseTraits(schema: CompiledSchema, traits: JsonValue): ParseResult {
  const problems = new Problems()
  const field = schema.root.children.get('traits') as Field
  return judge(schema, keepDeclared(field, traits, 'traits', problems), problems)
}

function judge(schema: CompiledSchema, traits: JsonValue, problems: Problems): ParseResult {
  const failed = problems.errors
  // A value that could not be typed is told once: neither its place nor what holds it is judged again.
  const found = schema
    .validate({ traits })
    .filter(({ path }) => !failed.some(other => isWithin(path, other.path) || isWithin(other.path, path)))
  const errors = [...failed, ...atLeaves(schema.root, found)]
  return errors.length > 0 ? { errors } : { traits: traits as JsonObject }
}

/** A missing object is reported at the leaves it must have. */
function atLeaves(root: Field, errors: readonly FieldError[]): FieldError[] {
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

function fieldAt(root: Field, path: string): Field | undefined {
  return findPath(root, path)?.at(-1)?.field
}

/** One after another, so that nobody has to wait for more of them than are told. */
function* requiredLeaves(
  field: Field | undefined,
  path: string,
  open: ReadonlySet<Field> = new Set(),
): Generator<string> {
  if (field?.kind !== 'object' || field.required.size === 0 || open.has(field)) yield path
  else {
    const inside = new Set(open).add(field)
    for (const name of field.required)
      yield* requiredLeaves(field.children.get(name), `${path}.${name}`, inside)
  }
}
