/** Who is denied, and who is exempt from every limit: kind `access`. Pure. */

import { type Network, parseNetwork } from '../../config/words/address.js'
import { PrefixTree } from '../../config/words/networks.js'
import type { AccessAction, Facts, Mode, Project, Rule } from '../types.js'

/** One entry, of a file or of the admin port. */
export interface AccessEntry {
  /** Its name in records and metrics, and where it is written. */
  readonly rule: Rule
  readonly action: AccessAction
  readonly networks: readonly Network[]
  /** Ids of projects. */
  readonly projects: readonly string[]
  /** When it expires, in milliseconds since the epoch. */
  readonly until: number | undefined
}

/** An entry that matches a request. */
export interface AccessMatch {
  readonly entry: AccessEntry
  /** The network or project id of the entry that matched. */
  readonly by: Network | string
  /** Prefix length of the network; -1 for a project, since networks beat projects. */
  readonly bits: number
}

/** The access entries that decide one request: at most one of each mode. */
export interface Ruling {
  readonly enforced: AccessMatch | undefined
  readonly reported: AccessMatch | undefined
}

/** Entries of the files, or of the admin port, ready to be looked up. */
export class AccessTable {
  readonly #entries = new Set<AccessEntry>()
  readonly #modes: Readonly<Record<Mode, Places>> = { enforce: new Places(), 'report-only': new Places() }

  constructor(entries: readonly AccessEntry[]) {
    for (const entry of entries) this.add(entry)
  }

  get entries(): readonly AccessEntry[] {
    return [...this.#entries]
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  add(entry: AccessEntry): void {
    this.#entries.add(entry)
    this.#modes[entry.rule.mode].add(entry)
  }

  remove(entry: AccessEntry): void {
    if (this.#entries.delete(entry)) this.#modes[entry.rule.mode].remove(entry)
  }

  /** @param client undefined if the address cannot be read */
  find(
    mode: Mode,
    client: Network | undefined,
    project: string | undefined,
    accepts: (match: AccessMatch) => boolean,
  ): AccessMatch | undefined {
    return this.#modes[mode].find(client, project, accepts)
  }
}

/** The entries of one mode, by what they name. */
class Places {
  readonly #networks = new PrefixTree<AccessMatch>(byStrictness)
  readonly #projects = new Map<string, readonly AccessMatch[]>()

  add(entry: AccessEntry): void {
    for (const network of entry.networks) {
      this.#networks.add(network, { entry, by: network, bits: network.bits })
    }
    for (const project of entry.projects) {
      const matches = [...(this.#projects.get(project) ?? []), { entry, by: project, bits: -1 }]
      this.#projects.set(project, matches.sort(byStrictness))
    }
  }

  remove(entry: AccessEntry): void {
    for (const network of entry.networks) this.#networks.remove(network, match => match.entry === entry)
    for (const project of entry.projects) {
      const left = this.#projects.get(project)?.filter(match => match.entry !== entry) ?? []
      if (left.length > 0) this.#projects.set(project, left)
      else this.#projects.delete(project)
    }
  }

  find(
    client: Network | undefined,
    project: string | undefined,
    accepts: (match: AccessMatch) => boolean,
  ): AccessMatch | undefined {
    const found = client && this.#networks.find(client, accepts)
    if (found !== undefined || project === undefined) return found
    return this.#projects.get(project)?.find(accepts)
  }
}

export const NO_ACCESS = new AccessTable([])

/** The entries of the files and those of the admin port, as one look-up. */
export class Access {
  readonly #files: AccessTable
  readonly #runtime: { readonly table: AccessTable }
  readonly #isInForce: (match: AccessMatch) => boolean

  /** @param now milliseconds since the epoch; in a replay, the log's clock */
  constructor(
    files: AccessTable,
    runtime: { readonly table: AccessTable } = { table: NO_ACCESS },
    now: () => number = () => Date.now(),
  ) {
    this.#files = files
    this.#runtime = runtime
    this.#isInForce = ({ entry: { until } }) => until === undefined || now() < until
  }

  /**
   * The entries that decide a request: the longest network wins, a network before a project, at equal length deny
   * before exempt. Undefined if no entry matches.
   *
   * @param project undefined if it is unknown
   */
  rulingOn(
    { client }: Pick<Facts, 'client'>,
    project: Pick<Project, 'id' | 'alias'> | undefined,
  ): Ruling | undefined {
    const { table } = this.#runtime
    if (this.#files.isEmpty && table.isEmpty) return undefined
    const address = parseNetwork(client)
    const name = project?.alias ?? project?.id
    const find = (mode: Mode): AccessMatch | undefined =>
      better(
        this.#files.find(mode, address, name, this.#isInForce),
        table.find(mode, address, name, this.#isInForce),
      )
    const [enforced, reported] = [find('enforce'), find('report-only')]
    return enforced === undefined && reported === undefined ? undefined : { enforced, reported }
  }
}

function better(one: AccessMatch | undefined, other: AccessMatch | undefined): AccessMatch | undefined {
  if (one === undefined || other === undefined) return one ?? other
  if (one.bits !== other.bits) return one.bits > other.bits ? one : other
  return byStrictness(one, other) <= 0 ? one : other
}

function byStrictness(a: AccessMatch, b: AccessMatch): number {
  return Number(b.entry.action === 'deny') - Number(a.entry.action === 'deny')
}
