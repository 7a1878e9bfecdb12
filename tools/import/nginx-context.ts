/** What a block of nginx's configuration inherits, and which block takes a request. */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import type { Guards } from './nginx-guard.js'
import type { Limit } from './nginx-limits.js'
import type { Directive } from './nginx-text.js'
import type { UpstreamSettings } from './parts.js'

/** What a block inherits from the blocks around it. */
export interface Context {
  /** Hosts of its server; none: every host. */
  readonly hosts: readonly string[]
  readonly projects: readonly string[]
  /** True where the server has more hosts than can be listed, which another server would take here. */
  readonly hasOtherHosts: boolean
  readonly kind: Place['kind']
  readonly path: string
  readonly limits: readonly Limit[]
  readonly guards: Guards
  readonly settings: UpstreamSettings
  /** The fields that are set on its requests. */
  readonly fields: readonly Directive[]
  /** False where only guards are read, because the routes of the server cannot be written. */
  readonly isRouted: boolean
}

/** A server or location that takes requests. */
export interface Taker {
  readonly context: Context
  readonly at: Directive
  readonly pass: Directive | undefined
  readonly block: readonly Directive[]
}

/** nginx takes the server first, then what the server rewrites, an exact location, a regular expression, and the longest prefix. */
export const rankOf = ({ hosts }: Context, kind: number, length: number): number[] => [
  hosts.length > 0 ? 1 : 0,
  kind,
  length,
]

/** Closes a place of a server, on the hosts that cannot be listed as well. */
export function closeIn(
  { hosts, hasOtherHosts }: Context,
  place: Omit<Place, 'hosts'>,
  what: string,
  at: Directive,
  into: Migration,
): void {
  into.close({ ...place, hosts }, what, at)
  const [, ...rank] = place.rank
  if (hasOtherHosts) into.close({ ...place, hosts: [], rank: [0, ...rank] }, what, at)
}

/** The rank of a server or location. */
export const rankIn = (context: Context): number[] =>
  context.kind === 'exact' ? rankOf(context, 3, 0) : rankOf(context, 1, context.path.length)

/**
 * The place of a location that forwards. If its path ends with a slash, nginx sends those who left it out to the path with
 * it, whatever a shorter prefix says.
 */
export const openIn = (context: Context): Place & { readonly redirectsTwin: boolean } => {
  const { hosts, kind, path } = context
  return { hosts, kind, path, rank: rankIn(context), redirectsTwin: kind === 'prefix' && path.endsWith('/') }
}
