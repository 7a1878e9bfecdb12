/** Negotiated limits set for now on the admin port, laid over the tables of the files. Pure. */
import { columnName } from '../../config/words/words.js'
import type { Project } from '../types.js'
import { type NegotiatedLimit, type NegotiatedLimits, NO_LIMITS } from './negotiated.js'
import type { Table } from './policy.js'
import { rolledOut } from './shares-and-trials.js'

/** The limit of one project, set for now. */
export interface QuotaForNow extends NegotiatedLimit {
  readonly project: string
}

/** Tables are made when a request of the project first needs one. */
export class QuotasForNow {
  readonly #negotiated: NegotiatedLimits
  readonly #limits = new Map<string, QuotaForNow[]>()
  /** By project, then by the table they are laid over: its plan and environment may differ between requests. */
  readonly #tables = new Map<string, Map<Table, Table>>()

  constructor(limits: readonly QuotaForNow[], negotiated: NegotiatedLimits) {
    this.#negotiated = negotiated
    for (const limit of limits) {
      const others = this.#limits.get(limit.project)
      if (others === undefined) this.#limits.set(limit.project, [limit])
      else others.push(limit)
    }
  }

  /** @param base the project's table as the files say it, which is returned if no limit is set for the project */
  table({ id, plan, environment }: Project, base: Table | undefined): Table | undefined {
    const limits = this.#limits.get(id)
    if (limits === undefined) return base
    const below = base ?? NO_LIMITS
    const tables = this.#tables.get(id) ?? new Map<Table, Table>()
    this.#tables.set(id, tables)
    const known = tables.get(below)
    if (known !== undefined) return known
    const table = this.#over(below, limits, columnName(plan, environment))
    tables.set(below, table)
    return table
  }

  #over(below: Table, limits: readonly QuotaForNow[], column: string): Table {
    const { tries } = this.#negotiated
    const valid = limits.filter(one => this.#negotiated.faultForNow(one, below, column) === undefined)
    if (valid.length === 0) return below
    return rolledOut(this.#negotiated.over(below, valid), rules => tries.of(rules))
  }
}
