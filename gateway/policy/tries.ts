/** The tries that a request's bucket is found in; columns and projects with the same buckets share them. */
import type { Overlay } from './overlay.js'
import type { Pattern } from './pattern.js'
import type { BucketRule, BucketTries, Table } from './policy.js'
import { PathTrie } from './trie.js'

/** Bucket name → its patterns. */
type Buckets = ReadonlyMap<string, { readonly patterns: readonly Pattern[] }>

export type Rules = Table['rules']

/** Two project-limits files may each add buckets to one column; columns that merge the same two share the result. */
export function mergeRules(
  present: Rules | undefined,
  added: Rules,
  merged: Map<Rules, Map<Rules, Rules>>,
): Rules {
  if (present === undefined) return added
  const known = merged.get(present) ?? new Map<Rules, Rules>()
  merged.set(present, known)
  const rules = known.get(added) ?? new Map([...present, ...added])
  known.set(added, rules)
  return rules
}

/** Builds tries of buckets, once for the same buckets: most rows and projects differ only in their numbers. */
export class Tries {
  readonly #buckets: Buckets
  readonly #built = new Map<string, BucketTries>()
  readonly #widened = new Map<Table, Map<string, BucketTries>>()

  constructor(buckets: Buckets) {
    this.#buckets = buckets
  }

  of(rules: Rules): BucketTries {
    const names = [...rules]
      .map(([name, { mode }]) => `${name} ${mode}`)
      .sort()
      .join('/')
    const present = this.#built.get(names)
    if (present !== undefined) return present
    const tries = emptyTries()
    for (const [name, { mode }] of rules) {
      for (const pattern of this.#buckets.get(name)?.patterns ?? []) tries[mode].add(pattern, name)
    }
    this.#built.set(names, tries)
    return tries
  }

  /** The tries of a project's rules, which may have buckets that its row lacks. */
  over(row: Table, rules: Overlay<BucketRule>): BucketTries {
    const { added } = rules
    if (added.length === 0) return row.buckets
    const known = this.#widened.get(row) ?? new Map<string, BucketTries>()
    this.#widened.set(row, known)
    const names = added.sort().join('/')
    const tries = known.get(names) ?? this.of(rules)
    known.set(names, tries)
    return tries
  }
}

export function emptyTries(): BucketTries {
  return { enforce: new PathTrie(), 'report-only': new PathTrie() }
}
