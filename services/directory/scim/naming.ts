import type { ResourceType } from '../model.js'
import { enterpriseUrn, groupUrn, userUrn } from './attributes.js'

/** The external names of a resource type (RFC 7643, section 6). */
export interface Naming {
  readonly type: ResourceType
  /** In URLs. */
  readonly path: 'Users' | 'Groups'
  /** In `meta.resourceType`. */
  readonly name: 'User' | 'Group'
  readonly schema: string
  readonly extensions: readonly string[]
  readonly description: string
}

export const namings: Readonly<Record<ResourceType, Naming>> = {
  user: {
    type: 'user',
    path: 'Users',
    name: 'User',
    schema: userUrn,
    extensions: [enterpriseUrn],
    description: 'User account',
  },
  group: {
    type: 'group',
    path: 'Groups',
    name: 'Group',
    schema: groupUrn,
    extensions: [],
    description: 'Group of users',
  },
}
