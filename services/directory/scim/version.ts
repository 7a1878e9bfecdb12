import type { Resource } from '../model.js'
import { ScimError } from './error.js'

/** The entity tag of a resource (RFC 7644, section 3.14): weak, and different after every change. */
export const versionOf = ({ modified }: Pick<Resource, 'modified'>): string =>
  `W/"${Date.parse(modified).toString(36)}"`

/** The conditions of a request, as in its header fields. */
export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

/** True when a read may be answered with 304. */
export const isKnown = (resource: Resource, { ifNoneMatch }: Conditions): boolean =>
  names(ifNoneMatch, versionOf(resource)) === true

/** Throws 412 unless the conditions of a write hold for the resource as it is now (RFC 9110, section 13). */
export function requireConditions(resource: Resource, { ifMatch, ifNoneMatch }: Conditions): void {
  const version = versionOf(resource)
  if (names(ifMatch, version) === false || names(ifNoneMatch, version) === true) {
    throw new ScimError(412, `The resource has changed: its version is ${version}.`)
  }
}

/**
 * Whether a list of entity tags, or `*`, contains the version; undefined without a list. Tags are compared weakly.
 * An empty list names no version, so that a writer whose tag got lost overwrites nothing.
 */
function names(list: string | undefined, version: string): boolean | undefined {
  if (list === undefined) return undefined
  const opaque = (tag: string): string => tag.trim().replace(/^W\//, '')
  return list.trim() === '*' || list.split(',').some(tag => opaque(tag) === opaque(version))
}
