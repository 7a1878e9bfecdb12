/** The rules of an imported configuration: volumetric, in-flight, and access. */
import { masked, networkText, parseNetwork } from '../../config/words/address.js'
import type { Migration } from './migration.js'
import type { Origin, RuleParts } from './parts.js'
import type { Places } from './paths.js'
import type { WindowQuota } from './rate.js'
import { From } from './yaml-text.js'

type RuleKind = 'volumetric' | 'in-flight' | 'access'

interface Exemption {
  readonly name: string
  readonly networks: readonly string[]
  readonly at: Origin
}

export class Rules {
  readonly #into: Migration
  readonly #places: Places
  readonly #rules: Record<RuleKind, From[]> = {
    volumetric: [],
    'in-flight': [],
    access: [],
  }
  readonly #exempt: Exemption[] = []
  #isAnyDenied = false

  constructor(into: Migration, places: Places) {
    this.#into = into
    this.#places = places
  }

  meter(parts: RuleParts & { readonly quota: WindowQuota }, at: Origin): void {
    this.#count('volumetric', parts, { quota: parts.quota }, at)
  }

  slots(parts: RuleParts & { readonly max: number }, at: Origin): void {
    this.#count('in-flight', parts, { max: parts.max, count: 'lifetime' }, at)
  }

  exempt(name: string, networks: readonly string[], at: Origin): void {
    this.#exempt.push({ name, networks, at })
  }

  /** Refuses clients of these networks everywhere. */
  deny(networks: readonly string[], at: Origin): void {
    if (networks.length === 0) return
    this.#isAnyDenied = true
    this.#access('denied', networks, 'deny', at)
  }

  /** The rules of each kind that has any. Called once, when all are known. */
  byKind(): [string, readonly From[]][] {
    // An exemption lifts every limit, and where networks overlap the longer one decides: it must not undo a refusal.
    for (const { name, networks, at } of this.#exempt) {
      if (!this.#isAnyDenied) {
        const be = networks.length === 1 ? 'is' : 'are'
        this.#into.changed(
          at,
          `${networks.join(', ')} ${be} exempt from every limit, not from this one alone.`,
        )
        this.#access(name, networks, 'exempt', at)
      } else {
        this.#into.lost(
          at,
          `the exemption of ${networks.join(', ')}. An exempt network within a denied one would be let in.`,
        )
      }
    }
    return Object.entries(this.#rules).filter(([, rules]) => rules.length > 0)
  }

  #count(kind: 'volumetric' | 'in-flight', parts: RuleParts, own: object, at: Origin): void {
    const match = this.#into.patternsOf(parts.match, at)
    if (match.length === 0) return
    const { key, projects = [], plans = [], networks, reportOnly, onStoreError, missing = 'skip' } = parts
    this.#places.addRule({ match, projects, at })
    const when = {
      ...(projects.length > 0 && { projects }),
      ...(plans.length > 0 && { plans }),
      ...(networks !== undefined && { networks }),
    }
    const rule = {
      id: this.#into.nameFor('rule', parts.name),
      match,
      ...(Object.keys(when).length > 0 && { when }),
      reads: true,
      key,
      ...(key.some(part => part.startsWith('header:')) && { missing }),
      ...own,
      mode: reportOnly ? 'report-only' : 'enforce',
      ...(onStoreError !== undefined && { onStoreError }),
    }
    this.#write(kind, rule, at)
  }

  /** Each network once: a second entry of it would be refused. */
  #access(name: string, networks: readonly string[], action: 'deny' | 'exempt', at: Origin): void {
    const fresh = networks.filter(text => {
      const network = parseNetwork(text)
      return this.#into.isNew(
        `listed ${action} ${network === undefined ? text : networkText(masked(network))}`,
      )
    })
    if (fresh.length === 0) return
    this.#write(
      'access',
      { id: this.#into.nameFor('rule', name), networks: fresh, action, mode: 'enforce' },
      at,
    )
  }

  #write(kind: RuleKind, rule: object, at: Origin): void {
    if (!this.#into.isSound(kind, { version: 1, kind, rules: [rule] }, at)) return
    this.#rules[kind].push(new From(this.#into.placeOf(at), rule))
  }
}
