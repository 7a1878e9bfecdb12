/** The compiled policy: one immutable snapshot that says which rules apply to a request. Pure. */
import type { Environment, Facts, Matched, Mode, Plan, Project, Rule } from '../types.js'
import type { PathTrie } from './trie.js'

/**
 * Pattern → bucket name, of buckets that have a quota here: requests of the others fall to the next less specific one.
 * The report-only ones stand apart, so that they take nothing from an enforced one.
 */
export type BucketTries = Readonly<Record<Mode, PathTrie<string>>>

/** The buckets of one (plan, environment), or of one project with overrides. */
export interface Table {
  readonly rules: ReadonlyMap<string, Rule>
  readonly buckets: BucketTries
}

/** `growth/production`: the name of one column of the spec's tables. */
export function columnName(plan: Plan, environment: Environment): string {
  return `${plan}/${environment}`
}

export class Policy {
  readonly #columns: ReadonlyMap<string, Table>
  readonly #projects: ReadonlyMap<string, Table>
  readonly #endpoint: PathTrie<readonly Rule[]>
  readonly #kindsOfReads: ReadonlySet<string>

  /** @param kindsOfReads the kinds of rules that look at GET, HEAD and OPTIONS too */
  constructor(
    columns: ReadonlyMap<string, Table>,
    projects: ReadonlyMap<string, Table>,
    endpoint: PathTrie<readonly Rule[]>,
    kindsOfReads: ReadonlySet<string>,
  ) {
    this.#columns = columns
    this.#projects = projects
    this.#endpoint = endpoint
    this.#kindsOfReads = kindsOfReads
  }

  /**
   * The rules that apply: at most one enforced bucket and one that only reports, then every endpoint rule.
   * CORS preflights are not charged; GET, HEAD and OPTIONS are exempt from endpoint-based limits
   * (spec, Limits), but for rules of kinds that limit reads. The GET that opens a WebSocket is no read: it holds the
   * upstream like a write.
   */
  match(facts: Facts, project: Project): Matched[] {
    const matched: Matched[] = []
    if (facts.preflight) return matched
    const table = this.tableOf(project)
    if (table !== undefined) {
      addBucket(matched, table, 'enforce', facts)
      addBucket(matched, table, 'report-only', facts)
    }
    const reads = !facts.upgrade && isRead(facts.method)
    if (reads && this.#kindsOfReads.size === 0) return matched
    for (const { value, route } of this.#endpoint.findAllFor(facts)) {
      for (const rule of value) {
        if (reads && !this.#kindsOfReads.has(rule.kind)) continue
        if (!matched.some(one => one.rule === rule)) matched.push({ rule, route })
      }
    }
    return matched
  }

  /** The buckets that count for a project. */
  tableOf({ id, plan, environment }: Project): Table | undefined {
    return this.#projects.get(id) ?? this.#columns.get(columnName(plan, environment))
  }
}

function addBucket(matched: Matched[], { rules, buckets }: Table, mode: Mode, facts: Facts): void {
  const found = buckets[mode].findFor(facts)
  if (found === undefined) return
  const rule = rules.get(found.value)
  if (rule !== undefined) matched.push({ rule, route: found.route })
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
