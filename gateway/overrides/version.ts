/**
 * Versions of what operators have set. Each names those before it, so that a gateway can tell whether what Redis has comes
 * after what it knows, before it (Redis has lost data), or beside it (and others have made changes since).
 */
import { randomBytes } from 'node:crypto'

/** In Redis `NUMBER.SINCE.ID,ID,…`. */
export interface Version {
  /** As Redis has it; undefined when it has none. */
  readonly text: string | undefined
  /** Changes since `since`. */
  readonly number: number
  /** When a gateway first stored something in a Redis that was empty; in ms since the epoch. */
  readonly since: number
  /** Its own id, and those of the versions before it, the latest first. */
  readonly ids: readonly string[]
}

export const NONE: Version = { text: undefined, number: 0, since: 0, ids: [] }

/** Ids of one version: so many changes may be lost at once and still be told apart from those made meanwhile. */
export const MOST_IDS = 16

export function versionOf(text = ''): Version {
  const [number = '', since = '', ids = ''] = text.split('.')
  return {
    text: text === '' ? undefined : text,
    number: Number.parseInt(number, 10) || 0,
    since: Number.parseInt(since, 10) || 0,
    ids: ids.split(',').filter(id => id !== ''),
  }
}

/** A version that follows this one. No two are the same. */
export function nextOf(version: Version): Version {
  const ids = [randomBytes(6).toString('hex'), ...version.ids].slice(0, MOST_IDS)
  return versionOf(`${version.number + 1}.${version.since || Date.now()}.${ids}`)
}

/**
 * What Redis has, beside what a gateway knows. `beside`: both have changes that the other has not; they have `common` as
 * their last version in common, or none if Redis was empty when others began anew.
 */
export type Relation =
  | { readonly is: 'after' | 'before' }
  | { readonly is: 'beside'; readonly common: string | undefined }

export function relationOf(found: Version, known: Version): Relation {
  const [knownId = '', foundId = ''] = [known.ids[0], found.ids[0]]
  if (known === NONE || found.ids.includes(knownId)) return { is: 'after' }
  if (found.text === undefined || known.ids.includes(foundId)) return { is: 'before' }
  if (found.since !== known.since) {
    return found.since < known.since ? { is: 'before' } : { is: 'beside', common: undefined }
  }
  const common = known.ids.find(id => found.ids.includes(id))
  if (common !== undefined) return { is: 'beside', common }
  // Too far apart to have an id in common.
  return { is: found.number < known.number ? 'before' : 'after' }
}
