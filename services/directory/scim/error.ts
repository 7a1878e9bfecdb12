import { HttpError } from '../../http/errors.js'
import type { JsonObject } from '../model.js'

/** Detail keywords of RFC 7644, section 3.12, that this service uses. */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness'

/** The body of an error response: `status` is a string, `scimType` is present only where the RFC defines one. */
export const errorBody = (status: number, detail: string, scimType?: ScimType): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
  status: String(status),
  ...(scimType ? { scimType } : {}),
  detail,
})

/** An error as defined in RFC 7644, section 3.12. */
export class ScimError extends HttpError {
  readonly scimType: ScimType | undefined

  constructor(status: number, detail: string, scimType?: ScimType) {
    super(status, detail)
    this.scimType = scimType
  }
}
