/** Which fields of a request are passed on to an upstream, in its head or as trailers. */

import { lettersOf } from '../../config/words/field-names.js'
import {
  CLIENT_FACT_FIELDS,
  HOP_BY_HOP_FIELDS,
  METHOD_OVERRIDE_FIELDS,
  REPLACED_FIELDS,
} from '../../config/words/words.js'
import { COMMON_NAMES } from '../http1/names.js'
import type { RequestFieldChanges } from '../route.js'
import type { UpstreamSettings } from './transport.js'

/** Only the gateway sets fields that begin like this, towards upstreams. */
export const INTERNAL = 'x-sluice-'
const PREFIXES = [INTERNAL, 'x-forwarded-'].map(lettersOf)

const RESERVED = [...HOP_BY_HOP_FIELDS, ...REPLACED_FIELDS, ...METHOD_OVERRIDE_FIELDS, ...CLIENT_FACT_FIELDS]

/** Fields by which a request's body is read here. */
const READ = ['content-type', 'content-encoding']

/**
 * `counted`: passed on, but not as a trailer. `vouched`: passed on from a trusted hop. `override`: passed on with a POST,
 * whose method it names.
 */
export type Fate = 'passes' | 'dropped' | 'counted' | 'vouched' | 'override'

export type FieldSettings = Pick<
  UpstreamSettings,
  'fingerprintHeaders' | 'proxyHeaders' | 'countedHeaders' | 'methodOverride'
>

/** Says what becomes of a client's fields. */
export interface FieldFates {
  /** The fate of a field in the head of a request; `name` in lower case. */
  fateOf(name: string): Fate
}

/**
 * The fate of a field by its name. Names are compared by their letters and digits alone: a CGI-style server gives the
 * application `X~Real.IP`, `X_Real_IP` and `X-Real-IP` under one name. Only the usual spelling of a name has a fate of
 * its own.
 */
export class RequestFields implements FieldFates {
  readonly #exact: ReadonlyMap<string, Fate>
  /** Letters and digits of the names that are dropped in any other spelling. */
  readonly #reserved: Set<string>
  readonly #changed = new WeakMap<RequestFieldChanges, FieldFates>()

  constructor({
    fingerprintHeaders: { ja3, ja4 },
    proxyHeaders,
    countedHeaders = [],
    methodOverride,
  }: FieldSettings) {
    const vouched = [ja3, ja4, ...proxyHeaders]
    this.#reserved = new Set([...RESERVED, ...vouched].map(lettersOf))
    // Otherwise a request could be counted by one value, and be served with another.
    const counted = [...READ, ...countedHeaders].filter(name => this.#fateOfOther(name) === 'passes')
    for (const name of counted) this.#reserved.add(lettersOf(name))
    const exact = new Map<string, Fate>(COMMON_NAMES.map(name => [name, this.#fateOfOther(name)]))
    exact.set('via', 'passes')
    for (const name of counted) exact.set(name, 'counted')
    for (const name of vouched) exact.set(name, 'vouched')
    if (methodOverride !== undefined) exact.set(methodOverride, 'override')
    this.#exact = exact
  }

  /** The same where a route sends fields of its own, or none: a client's are dropped in every spelling. */
  changedBy(changes: RequestFieldChanges | undefined): FieldFates {
    if (changes === undefined) return this
    const known = this.#changed.get(changes) ?? new ChangedFields(this, changes.removed)
    this.#changed.set(changes, known)
    return known
  }

  fateOf(name: string): Fate {
    return this.#exact.get(name) ?? this.#fateOfOther(name)
  }

  #fateOfOther(name: string): Fate {
    const letters = lettersOf(name)
    if (this.#reserved.has(letters) || PREFIXES.some(prefix => letters.startsWith(prefix))) return 'dropped'
    return 'passes'
  }
}

class ChangedFields implements FieldFates {
  readonly #fields: FieldFates
  /** Letters and digits of the names. */
  readonly #dropped: ReadonlySet<string>
  readonly #common: ReadonlyMap<string, Fate>

  constructor(fields: FieldFates, dropped: readonly string[]) {
    this.#fields = fields
    this.#dropped = new Set(dropped.map(lettersOf))
    this.#common = new Map(COMMON_NAMES.map(name => [name, this.#fateOf(name)]))
  }

  fateOf(name: string): Fate {
    return this.#common.get(name) ?? this.#fateOf(name)
  }

  #fateOf(name: string): Fate {
    return this.#dropped.has(lettersOf(name)) ? 'dropped' : this.#fields.fateOf(name)
  }
}
