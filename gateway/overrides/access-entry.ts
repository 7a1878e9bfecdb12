/** Access entries set by the admin API, as they are stored: plain data, fit for JSON. */
import { endOf } from '../../config/formats.js'
import { RUNTIME_SERIES } from '../../config/words/reserved-names.js'
import type { AccessEntry } from '../policy/access.js'
import { accessEntry } from '../policy/access-entries.js'
import type { AccessAction, Mode } from '../types.js'
import type { Ending } from './until.js'

export interface RuntimeEntry extends Ending {
  readonly id: string
  readonly networks?: readonly string[]
  readonly projects?: readonly string[]
  readonly action: AccessAction
  readonly mode: Mode
  readonly why: string
  /** Who asked for it: a name, or else an address. */
  readonly by: string
  /** When it was set, ISO 8601. */
  readonly at: string
  /** Id of the override that set it. */
  readonly override: string
}

/** The source that records give for an entry. */
export const sourceOf = (id: string): string => `/access/${id}`

/** The entry compiled for look-ups. */
export function compiledEntry({ until, ...entry }: RuntimeEntry): AccessEntry {
  const written = { ...entry, until: until === undefined ? undefined : endOf(until) }
  return accessEntry(written, { file: sourceOf(entry.id), line: undefined }, RUNTIME_SERIES)
}
