/** Modes that the admin port has set for now, laid over the rules of the files. Pure. */
import type { BucketConfig } from '../../config/bucket.js'
import type { Mode, Rule } from '../types.js'
import { AccessTable } from './access.js'
import { Overlay } from './overlay.js'
import type { Table } from './policy.js'

/** Of one rule. */
export interface ModeForNow {
  readonly mode: Mode
  /** Path of the act on the admin port. */
  readonly src: string
}

/**
 * Changes only what a rule's refusals lead to. A bucket keeps its place among the patterns, so that its requests do not fall
 * to another bucket and use up that one's quota. Equal rules stay one object, since what they count is remembered by it.
 */
export class ModesForNow {
  readonly #modes: ReadonlyMap<string, ModeForNow>
  readonly #rules = new Map<Rule, Rule>()
  readonly #tables = new WeakMap<Table, Table>()

  /** @param modes by the rule's id */
  constructor(modes: ReadonlyMap<string, ModeForNow>) {
    this.#modes = modes
  }

  /** The rule as it stands now; itself where nothing was set. */
  rule(rule: Rule): Rule {
    const set = this.#modes.get(rule.id)
    if (set === undefined || set.mode === rule.mode || !mayChange(rule, set.mode)) return rule
    const { mode, src } = set
    const changed = this.#rules.get(rule) ?? {
      ...rule,
      mode,
      share: undefined,
      forNow: { declared: rule.mode, src },
    }
    this.#rules.set(rule, changed)
    return changed
  }

  /** The buckets as they stand now. */
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

/** A share is not widened, and an unlimited bucket cannot refuse anything. */
function mayChange({ kind, share, config }: Rule, mode: Mode): boolean {
  if (mode === 'enforce' && share !== undefined) return false
  return kind !== 'project-limits' || !('unlimited' in (config as BucketConfig))
}
