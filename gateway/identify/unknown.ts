/** Whom a request counts for when no identifier knows its project: the setting `unknownProject`. */
import {
  BY_CLIENT,
  BY_HOST,
  columnOfUnknown,
  countsUnknownBy,
  TOGETHER,
  type UnknownProject,
} from '../../config/words/words.js'
import type { Facts, Project } from '../types.js'

/** Stands for the hosts beyond the first hundred. */
const OTHER_HOSTS = `${BY_HOST}others`

/** Most unknown hosts with a counter of their own; all others share one, or each made-up Host would get a new quota. */
const MOST_UNKNOWN_HOSTS = 100

/** Unknown hosts with a counter of their own. Kept across reloads, or each would give made-up hosts new quota. */
export class UnknownHosts {
  readonly #names = new Set<string>()

  /** Remembers the host while there are few; true if it then has a counter of its own. */
  countApart(host: string): boolean {
    if (this.#names.size < MOST_UNKNOWN_HOSTS) this.#names.add(host)
    return this.hasRoomFor(host)
  }

  /** Whether the host has a counter of its own, or would get one. */
  hasRoomFor(host: string): boolean {
    return this.#names.size < MOST_UNKNOWN_HOSTS || this.#names.has(host)
  }
}

/** What identifies an unknown caller. */
type Caller = Pick<Facts, 'host' | 'network'>

/**
 * Whom unknown callers count for. Entries and conditions name them by host, whatever they are counted by.
 *
 * @returns undefined if they are rejected
 */
export function unknownCallers(
  setting: UnknownProject,
  hosts: Pick<UnknownHosts, 'countApart'>,
): ((caller: Caller) => Project) | undefined {
  const column = columnOfUnknown(setting)
  if (column === undefined) return undefined
  const by = countsUnknownBy(setting)
  return ({ host, network }) => {
    const alias = BY_HOST + host
    if (by === 'client') return { id: BY_CLIENT + network, ...column, alias, client: network }
    if (by === 'together') return { id: TOGETHER, ...column, alias }
    return hosts.countApart(host) ? { id: alias, ...column } : { id: OTHER_HOSTS, ...column, alias }
  }
}
