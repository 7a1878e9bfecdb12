/** Shared helpers of the tests of the SCIM rules. */
import type { Test } from 'tap'
import type { JsonObject, JsonValue } from '../../../../services/directory/model.js'
import { applyPatch } from '../../../../services/directory/scim/patch.js'
import { parsePatch } from '../../../../services/directory/scim/patch-path.js'
import { userAttributes } from '../../../../services/directory/scim/schema.js'
import { readUser } from '../../../../services/directory/scim/user.js'

/** Asserts that the action throws an error with these fields. */
export function refuses(
  t: Test,
  action: () => unknown,
  fields: object,
  title = JSON.stringify(fields),
): void {
  try {
    action()
    t.fail(`${title}: not refused`)
  } catch (error) {
    t.match(error, fields, title)
  }
}

/** The resource after these operations, as it would be stored. */
export const patched = (raw: JsonObject, ...Operations: JsonValue[]): JsonObject => {
  const extensions = Object.keys(raw).filter(key => key.includes(':'))
  return readUser(applyPatch(raw, parsePatch({ Operations }, extensions), userAttributes))
}
/** A user to change. */
export const base = readUser({
  userName: 'ada',
  name: { givenName: 'Ada' },
  emails: [{ type: 'work', value: 'w', primary: true }],
})

/** The body of a SCIM error. */
export const refusal = (status: number, scimType?: string): object => ({
  status,
  body: {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    detail: String,
    ...(scimType ? { scimType } : {}),
  },
})
/** A query for users. */
export const search = (values: Record<string, string | number>): string =>
  `?${new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]))}`
