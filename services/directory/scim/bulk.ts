import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonObject, JsonValue, ResourceType } from '../model.js'
import { namings } from './attributes.js'
import { ScimError } from './error.js'
import { attributeValue } from './json.js'

/** One operation of a Bulk request (RFC 7644, section 3.7). `id` may be a reference such as `bulkId:x`. */
export interface BulkOperation {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly type: ResourceType
  readonly id: string | undefined
  readonly bulkId: string | undefined
  readonly data: JsonValue | undefined
  readonly version: string | undefined
}

export interface BulkRequest {
  /** Operations as received; each is read when it is its turn, so that an invalid one fails alone. */
  readonly operations: readonly JsonValue[]
  /** Number of errors after which the remaining operations are skipped. */
  readonly failOnErrors: number
}

const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
const referencePattern = /^bulkId:(.+)$/i

/** Reads the envelope of a Bulk request. Throws 400 invalidSyntax, or 413 for too many operations. */
export function readBulk(body: unknown): BulkRequest {
  const operations = isJsonObject(body) ? attributeValue(body, 'Operations') : undefined
  if (!isJsonObject(body) || !Array.isArray(operations) || operations.length === 0) {
    throw syntax('The body must have a list "Operations" with at least one operation.')
  }
  if (operations.length > limits.bulkOperations) {
    throw new ScimError(413, `More than ${limits.bulkOperations} operations; send fewer at a time.`)
  }
  const failOnErrors = attributeValue(body, 'failOnErrors') ?? operations.length
  if (typeof failOnErrors !== 'number' || !Number.isInteger(failOnErrors) || failOnErrors < 1) {
    throw syntax('failOnErrors must be a whole number of at least 1.')
  }
  return { operations, failOnErrors }
}

/** Reads one operation. Throws 400 invalidSyntax or invalidPath. */
export function readBulkOperation(operation: JsonValue): BulkOperation {
  if (!isJsonObject(operation)) throw syntax('An operation must be an object.')
  const method = methods.find(each => each === String(attributeValue(operation, 'method')).toUpperCase())
  if (!method) throw syntax(`"method" must be one of ${methods.join(', ')}.`)
  const bulkId = textOf(operation, 'bulkId')
  if (method === 'POST' && !bulkId) throw syntax('A POST needs a "bulkId".')
  const path = textOf(operation, 'path') ?? ''
  const [, collection = '', id] = /^\/(\w+)(?:\/([^/?#]+))?$/.exec(path) ?? []
  const type = Object.values(namings).find(naming => naming.path === collection)?.type
  if (!type || (id === undefined) !== (method === 'POST')) {
    throw new ScimError(
      400,
      `"path" must be /Users or /Groups for a POST, with an id for ${methods.slice(1).join(', ')}.`,
      'invalidPath',
    )
  }
  return {
    method,
    type,
    id,
    bulkId,
    data: attributeValue(operation, 'data'),
    version: textOf(operation, 'version'),
  }
}

/** The bulkIds that an operation's id and data refer to. */
export function referencesOf({ id, data }: Pick<BulkOperation, 'id' | 'data'>): string[] {
  const found: string[] = []
  replaceTexts([id ?? null, data ?? null], text => {
    const name = referencePattern.exec(text)?.[1]
    if (name !== undefined) found.push(name)
    return text
  })
  return found
}

/** The operation with each reference replaced by the id it stands for; `idOf` has all of them. */
export function resolved(operation: BulkOperation, idOf: ReadonlyMap<string, string>): BulkOperation {
  const change = (text: string): string => idOf.get(referencePattern.exec(text)?.[1] ?? '') ?? text
  const { id, data } = operation
  return {
    ...operation,
    id: id === undefined ? undefined : change(id),
    data: data === undefined ? undefined : replaceTexts(data, change),
  }
}

/** A copy with every string value replaced. Values nested too deep stay: they are refused when the resource is read. */
function replaceTexts(value: JsonValue, change: (text: string) => string, depth = 0): JsonValue {
  if (typeof value === 'string') return change(value)
  if (depth > limits.bodyDepth) return value
  if (Array.isArray(value)) return value.map(item => replaceTexts(item, change, depth + 1))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([name, item]) => [name, replaceTexts(item, change, depth + 1)])
  return Object.fromEntries(entries) as JsonObject
}

function textOf(operation: JsonObject, name: string): string | undefined {
  const value = attributeValue(operation, name)
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  throw syntax(`"${name}" must be a string.`)
}

const syntax = (detail: string): ScimError => new ScimError(400, detail, 'invalidSyntax')
