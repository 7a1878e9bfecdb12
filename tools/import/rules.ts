/** The rules of an imported configuration: volumetric, in-flight, and access by the networks that a list refuses. */

import { masked, networkText, parseNetwork } from '../../config/words/address.js'
import type { KeyPart } from '../../config/words/words.js'
import type { WindowQuota } from './buckets.js'
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import { Overlaps } from './places.js'
import { From } from './yaml.js'

type RuleKind = 'volumetric' | 'in-flight' | 'access'

/** The parts that volumetric and in-flight rules have in common. */
export interface RuleParts {
  /** Turned into a unique name. */
  readonly name: string
  readonly match: readonly string[]
  readonly key: readonly KeyPart[]
  /** Projects to whose requests the rule applies; none: all. */
  readonly projects?: readonly string[]
  /** Plans to which the rule applies; none: all. */
  readonly plans?: readonly string[]
  readonly networks?: readonly string[]
  readonly reportOnly?: boolean
  readonly onStoreError?: 'closed'
  /** What becomes of requests without a header of the key; absent: they are not counted. */
  readonly missing?: 'shared'
}

export class ImportedRules {
  /** Finds the requests of other places that a rule counts, too. */
  readonly overlaps = new Overlaps()
  readonly #into: Migration
  readonly #rules: Record<RuleKind, From[]> = { volumetric: [], 'in-flight': [], access: [] }
  readonly #exempt: { readonly name: string; readonly networks: readonly string[]; readonly at: Origin }[] =
    []
  #isAnyDenied = false

  constructor(into: Migration) {
    this.#into = into
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

  deny(networks: readonly string[], at: Origin): void {
    if (networks.length === 0) return
    this.#isAnyDenied = true
    this.#access('denied', networks, 'deny', at)
  }

  /** The rules of each kind that has any. Called once, when all are known. */
  byKind(): [string, readonly From[]][] {
    // An exemption lifts every limit, and where networks overlap the longer one decides: it must not undo a refusal.
    for (const { name, networks, at } of this.#exempt) {
      const which = networks.join(', ')
      if (this.#isAnyDenied) {
        const why = 'An exempt network within a denied one would be let in.'
        this.#into.lost(at, `the exemption of ${which}. ${why}`)
        continue
      }
      const be = networks.length === 1 ? 'is' : 'are'
      this.#into.changed(at, `${which} ${be} exempt from every limit, not from this one alone.`)
      this.#access(name, networks, 'exempt', at)
    }
    return Object.entries(this.#rules).filter(([, rules]) => rules.length > 0)
  }

  #count(kind: 'volumetric' | 'in-flight', parts: RuleParts, own: object, at: Origin): void {
    const match = this.#into.patternsOf(parts.match, at)
    if (match.length === 0) return
    const { key, projects = [], plans = [], networks, reportOnly, onStoreError, missing = 'skip' } = parts
    this.overlaps.addRule({ match, projects, at })
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
      const whole = network === undefined ? text : networkText(masked(network))
      return this.#into.isNew(`listed ${action} ${whole}`)
    })
    if (fresh.length === 0) return
    const id = this.#into.nameFor('rule', name)
    this.#write('access', { id, networks: fresh, action, mode: 'enforce' }, at)
  }

  #write(kind: RuleKind, rule: object, at: Origin): void {
    if (!this.#into.isSound(kind, { version: 1, kind, rules: [rule] }, at)) return
    this.#rules[kind].push(new From(this.#into.placeOf(at), rule))
  }
}

/** A line of a list that refuses addresses. The first one that names an address decides. */
export interface AddressLine {
  readonly allow: boolean
  /** An address, a network, or `all`. */
  readonly network: string
}

type Range = readonly [from: bigint, to: bigint]
/** Addresses of IPv4 and IPv6 have so many bits. */
const FAMILIES = [32, 128]
const MOST_RANGES = 1000

/** The refused networks of lists that are all the same; undefined also when there is none, or one is missing. */
export function deniedByAll(lists: readonly (readonly AddressLine[] | undefined)[]): string[] | undefined {
  const [first] = lists
  const text = JSON.stringify(first)
  const isShared = first !== undefined && lists.every(one => JSON.stringify(one) === text)
  return isShared ? deniedNetworks(first) : undefined
}

/** The refused networks; undefined when a line cannot be read, or they would be too many. */
export function deniedNetworks(lines: readonly AddressLine[]): string[] | undefined {
  const denied: string[] = []
  for (const bits of FAMILIES) {
    const everything: Range = [0n, (1n << BigInt(bits)) - 1n]
    let open: Range[] = [everything]
    const refused: Range[] = []
    for (const { allow, network } of lines) {
      const range = network === 'all' ? everything : rangeOf(network, bits)
      if (range === undefined && parseNetwork(network) === undefined) return undefined
      if (range === undefined) continue
      const left: Range[] = []
      for (const one of open) {
        let [low, high] = range
        if (one[0] > low) low = one[0]
        if (one[1] < high) high = one[1]
        if (low > high) {
          left.push(one)
          continue
        }
        if (!allow) refused.push([low, high])
        if (one[0] < low) left.push([one[0], low - 1n])
        if (high < one[1]) left.push([high + 1n, one[1]])
      }
      open = left
      if (open.length + refused.length > MOST_RANGES) return undefined
    }
    denied.push(...refused.flatMap(range => networksOf(range, bits)))
  }
  return denied.length > MOST_RANGES ? undefined : denied
}

function rangeOf(text: string, bits: number): Range | undefined {
  const network = parseNetwork(text)
  if (network === undefined || network.words.length * 32 !== bits) return undefined
  const size = 1n << BigInt(bits - network.bits)
  const address = network.words.reduce((sum, word) => (sum << 32n) + BigInt(word), 0n)
  const low = address - (address % size)
  return [low, low + size - 1n]
}

/** The fewest networks that make up a range. */
function networksOf([from, to]: Range, bits: number): string[] {
  const networks: string[] = []
  for (let low = from; low <= to; ) {
    let prefix = bits
    while (prefix > 0) {
      const size = 1n << BigInt(bits - prefix + 1)
      if (low % size !== 0n || low + size - 1n > to) break
      prefix -= 1
    }
    const words = Array.from({ length: bits / 32 }, (_, i) =>
      Number((low >> BigInt(bits - 32 * (i + 1))) & 0xffffffffn),
    )
    networks.push(networkText({ words, bits: prefix }))
    low += 1n << BigInt(bits - prefix)
  }
  return networks
}

/** True for an address to listen on that only this machine or a private network can reach. */
export const isPrivate = (address: string): boolean =>
  /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|localhost\b|\[::1\]|\[f[cd]|unix:)/.test(address)
