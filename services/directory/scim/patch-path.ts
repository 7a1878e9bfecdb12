import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonObject, JsonValue } from '../model.js'
import { enterpriseUrn } from './attributes.js'
import { ScimError } from './error.js'
import { type AttributePath, type Filter, parseAttributePath, parseFilter } from './filter.js'
import { attributeValue, checkName, clean, isPassword } from './json.js'

/** The target of a PATCH operation: `emails`, `name.givenName`, `emails[type eq "work"]`, `emails[…].value`. */
export interface PatchPath {
  readonly names: AttributePath
  readonly filter: Filter | undefined
  /** Names after the filter. */
  readonly sub: AttributePath
}

/** One operation with a path; operations without one are split into one step per attribute. */
export interface PatchStep {
  readonly op: 'add' | 'replace' | 'remove'
  readonly path: PatchPath
  /** Undefined when absent; null requests removal. */
  readonly value: JsonValue | undefined
}

const readOnly = new Set(['id', 'meta', 'groups'])

/**
 * Parses a PATCH body (RFC 7644, section 3.5.2) as identity providers really send it: capitalised operations, dotted
 * and URN keys in an object without a path. `extensions` are the schema URNs the resource has.
 */
export function parsePatch(body: unknown, extensions: readonly string[]): PatchStep[] {
  const operations = isJsonObject(body) ? attributeValue(body, 'Operations') : undefined
  if (!Array.isArray(operations) || operations.length === 0) {
    throw new ScimError(
      400,
      'The body must have a list "Operations" with at least one operation.',
      'invalidSyntax',
    )
  }
  const steps: PatchStep[] = []
  for (const operation of operations) {
    for (const step of readOperation(operation, extensions)) {
      if (steps.length === limits.operations) {
        const detail = `More than ${limits.operations} operations, or attributes of operations without a path.`
        throw new ScimError(400, detail, 'invalidValue')
      }
      steps.push(step)
    }
  }
  return steps
}

/** A generator, so that it reads no further than its steps are taken. */
function* readOperation(operation: JsonValue, extensions: readonly string[]): Generator<PatchStep> {
  if (!isJsonObject(operation)) throw new ScimError(400, 'An operation must be an object.', 'invalidSyntax')
  const op = String(attributeValue(operation, 'op')).toLowerCase()
  if (op !== 'add' && op !== 'replace' && op !== 'remove') {
    throw new ScimError(400, `"op" must be add, replace or remove.`, 'invalidSyntax')
  }
  const path = attributeValue(operation, 'path') ?? ''
  if (typeof path !== 'string') throw new ScimError(400, '"path" must be a string.', 'invalidPath')
  const given = attributeValue(operation, 'value')
  if (given === undefined && op !== 'remove') {
    throw new ScimError(400, `The operation ${op} needs a "value".`, 'invalidValue')
  }
  const value = given === undefined ? undefined : clean(given, true)
  if (path.trim() !== '') {
    if (!isPassword(path)) yield readStep(op, path, value, extensions)
    return
  }
  if (op === 'remove') throw new ScimError(400, 'The operation remove needs a "path".', 'noTarget')
  if (!isJsonObject(value)) {
    throw new ScimError(400, 'Without a "path" the "value" must be an object.', 'invalidValue')
  }
  yield* splitObject(op, value, extensions)
}

/** Without a path each key is one. Read-only attributes are skipped: providers send `id` along with a rename. */
function* splitObject(
  op: 'add' | 'replace',
  value: JsonObject,
  extensions: readonly string[],
): Generator<PatchStep> {
  for (const [key, item] of Object.entries(value)) {
    if (readOnly.has(key.toLowerCase()) || isPassword(key)) continue
    yield readStep(op, key, item, isJsonObject(item) && isExtension(key) ? [...extensions, key] : extensions)
  }
}

/** A URN whose value is an object is a whole extension, unless it is an attribute of the one we know. */
const isExtension = (key: string): boolean =>
  key.includes(':') && !key.toLowerCase().startsWith(`${enterpriseUrn.toLowerCase()}:`)

function readStep(
  op: PatchStep['op'],
  text: string,
  value: JsonValue | undefined,
  extensions: readonly string[],
): PatchStep {
  const path = parsePatchPath(text.trim(), extensions)
  if (readOnly.has(path.names[0]?.toLowerCase() ?? '')) {
    throw new ScimError(400, `${path.names[0]} is read-only.`, 'mutability')
  }
  return { op: value === null && op !== 'remove' ? 'remove' : op, path, value }
}

/** Parses a path of RFC 7644, section 3.5.2. Throws 400 invalidPath or invalidFilter. */
export function parsePatchPath(text: string, extensions: readonly string[] = []): PatchPath {
  const open = text.indexOf('[')
  if (open < 0) return { names: names(text, extensions), filter: undefined, sub: [] }
  const close = text.lastIndexOf(']')
  const rest = text.slice(close + 1)
  if (close < open || (rest !== '' && !rest.startsWith('.'))) throw notAPath(text)
  const sub = rest === '' ? [] : rest.slice(1).split('.')
  if (!sub.every(isName) || sub.length > limits.pathNames) throw notAPath(text)
  for (const name of sub) checkName(name)
  return {
    names: names(text.slice(0, open), extensions),
    filter: parseFilter(text.slice(open + 1, close)),
    sub,
  }
}

const isName = (name: string): boolean => /^[\w$-]+$/.test(name)

function names(text: string, extensions: readonly string[]): AttributePath {
  const path = parseAttributePath(text, extensions)
  const [first = '', ...rest] = path
  if (!(isName(first) || first.includes(':')) || !rest.every(isName)) throw notAPath(text)
  return path
}

const notAPath = (text: string): ScimError =>
  new ScimError(400, `"${text.slice(0, 200)}" is not a path.`, 'invalidPath')
