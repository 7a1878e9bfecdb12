import { isJsonObject } from '../../json.js'
import type { Directory, JsonObject, JsonValue } from '../model.js'
import { type BulkOperation, readBulk, readBulkOperation, referencesOf, resolved } from '../scim/bulk.js'
import { errorBody, ScimError } from '../scim/error.js'
import { attributeValue } from '../scim/json.js'
import type { ScimIntake } from './intake.js'

/** An operation with its place in the request. */
interface Item {
  readonly index: number
  readonly operation: BulkOperation
}

/**
 * Runs a Bulk request (RFC 7644, section 3.7): each operation separately and in order, except that one that refers to
 * a later POST waits for it. Throws ScimError when the request as a whole is not valid.
 */
export async function runBulk(
  intake: ScimIntake,
  directory: Directory,
  body: unknown,
  base: string,
): Promise<JsonObject> {
  const { operations, failOnErrors } = readBulk(body)
  const results: JsonObject[] = []
  const ids = new Map<string, string>()
  /** The bulkIds of more than one POST: a reference to one could mean either. */
  const ambiguous = new Set<string>()
  let errors = 0

  const fail = (index: number, error: unknown): void => {
    if (!(error instanceof ScimError)) throw error
    errors++
    const response = errorBody(error.status, error.message, error.scimType)
    results[index] = { ...echo(operations[index] ?? null), status: String(error.status), response }
  }

  async function perform({ index, operation }: Item): Promise<void> {
    try {
      const unclear = referencesOf(operation).find(name => ambiguous.has(name))
      if (unclear !== undefined) {
        const detail = `Several operations have the bulkId "${unclear}": give each its own.`
        throw new ScimError(409, detail, 'invalidValue')
      }
      const { method, type, id, bulkId, data, version } = resolved(operation, ids)
      const conditions = { ifMatch: version }
      const answer = await intake.handle(directory, { method, type, id, body: data, base, conditions })
      const created = answer.location?.slice(answer.location.lastIndexOf('/') + 1)
      if (method === 'POST' && bulkId && created) ids.set(bulkId, created)
      results[index] = {
        ...echo(operations[index] ?? null),
        ...(answer.location ? { location: answer.location } : {}),
        ...(answer.version ? { version: answer.version } : {}),
        status: String(answer.status),
      }
    } catch (error) {
      fail(index, error)
    }
  }

  let waiting: Item[] = []
  for (const [index, operation] of operations.entries()) {
    try {
      waiting.push({ index, operation: readBulkOperation(operation) })
    } catch (error) {
      fail(index, error)
    }
  }
  const named = new Set<string>()
  for (const { method, bulkId = '' } of waiting.map(({ operation }) => operation)) {
    if (method !== 'POST') continue
    if (named.has(bulkId)) ambiguous.add(bulkId)
    named.add(bulkId)
  }
  const isReady = ({ operation }: Item): boolean => referencesOf(operation).every(name => ids.has(name))
  for (let moved = true; moved && errors < failOnErrors; ) {
    moved = false
    const later: Item[] = []
    for (const item of waiting) {
      if (errors >= failOnErrors) break
      if (isReady(item)) {
        moved = true
        await perform(item)
      } else later.push(item)
    }
    waiting = later
  }
  for (const { index, operation } of errors < failOnErrors ? waiting : []) {
    const missing = referencesOf(operation).find(name => !ids.has(name))
    fail(index, new ScimError(409, `No operation created "bulkId:${missing}".`, 'invalidValue'))
  }
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkResponse'],
    Operations: results.filter(Boolean),
  }
}

/** The fields of an operation that its result repeats. */
function echo(operation: JsonValue): JsonObject {
  const given = isJsonObject(operation) ? operation : {}
  const names = ['method', 'bulkId', 'path'] as const
  const texts = names.map(name => [name, attributeValue(given, name)] as const)
  return Object.fromEntries(texts.filter(([, value]) => typeof value === 'string')) as JsonObject
}
