import type { Json, JsonObject, Resource } from '../model.js'
import { groupAttributes, groupUrn } from './schema.js'
import { readResource, requireText } from './user.js'

/** Checks a whole group; its members are handed out apart, undefined when the body has none. */
export function readGroup(body: unknown): { raw: JsonObject; members: Json | undefined } {
  const { id: _id, meta: _meta, members, ...raw } = readResource(body, groupUrn, groupAttributes)
  requireText(raw, 'displayName')
  return { raw, members }
}

/** The directory group of the management API and of events. `raw` is without members, which may be very many. */
export interface GroupView {
  id: string
  name: string
  raw: JsonObject
}

/** A stored group as others see it. */
export function viewGroup({ id, raw }: Pick<Resource, 'id' | 'raw'>): GroupView {
  return { id, name: String(raw.displayName), raw: { ...raw, id } }
}
