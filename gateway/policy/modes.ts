/** Modes set for now on the admin port, laid over the rules of the files. Pure. */
import { isUnlimited } from '../../config/words/bucket.js'
import { compiledRule } from '../compiled-rule.js'
import type { Mode, Rule } from '../types.js'
import { AccessTable } from './access.js'
import { Overlay } from './overlay.js'
import type { Table } from './policy.js'

/** The mode set for one rule. */
export interface ModeForNow {
  readonly mode: Mode
  /** Path of the override on the admin port. */
  readonly src: string
}

/**
 * Changes only the effect of a rule's refusals. A bucket keeps its place among the patterns, so that its requests do
 * not fall into another bucket and use up that one's quota.
 */
export class ModesForNow {
  readonly #modes: ReadonlyMap<string, ModeForNow>
  readonly #tables = new WeakMap<Table, Table>()

  /** @param modes by the rule's id */
  constructor(modes: ReadonlyMap<string, ModeForNow>) {
    this.#modes = modes
  }

  /** The rule with the mode that holds now; the same object if no other mode was set. */
  rule<Config>(rule: Rule<Config>): Rule<Config> {
    const set = this.#modes.get(rule.id)
    if (set === undefined || set.mode === rule.mode || !mayChange(rule, set.mode)) return rule
    const { made = {} } = rule
    if (made.forNow?.set !== set) {
      const { mode, src } = set
      const forNow = { declared: rule.mode, src }
      made.forNow = { set, rule: compiledRule({ ...rule, mode, share: undefined, forNow }) }
    }
    return made.forNow.rule as Rule<Config>
  }

  /** The table with the modes that hold now. */
  table(table: Table): Table {
    const known = this.#tables.get(table)
    if (known !== undefined) return known
    const rules = new Overlay(table.rules)
    for (const id of this.#modes.keys()) {
      const rule = table.rules.get(id)
      if (rule !== undefined) rules.set(id, this.rule(rule))
    }
    const changed = { ...table, rules }
    this.#tables.set(table, changed)
    return changed
  }

  access(table: AccessTable): AccessTable {
    const entries = table.entries.map(entry => ({ ...entry, rule: this.rule(entry.rule) }))
    return new AccessTable(entries)
  }
}

/** Enforcing must not widen a share, and an unlimited bucket cannot refuse anything. */
function mayChange(rule: Rule, mode: Mode): boolean {
  return (mode !== 'enforce' || rule.share === undefined) && !isUnlimited(rule)
}
