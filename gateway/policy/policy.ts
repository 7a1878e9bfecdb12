/** The compiled policy: one immutable snapshot that says which rules apply to a request. Pure. */
import type { Environment, Facts, Matched, Plan, Project, Rule } from '../types.js'
import type { PathTrie } from './trie.js'

/** The buckets of one (plan, environment), or of one project with overrides. */
export interface Table {
  readonly rules: ReadonlyMap<string, Rule>
  /** Pattern → bucket name, of buckets that have a quota here: requests of the others fall to the next less specific one. */
  readonly buckets: PathTrie<string>
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
   * The rules that apply: at most one bucket, then every endpoint rule.
   * CORS preflights are not charged; GET, HEAD and OPTIONS are exempt from endpoint-based limits
   * (spec, Limits), but for rules of kinds that limit reads. The GET that opens a WebSocket is no read: it holds the
   * upstream like a write.
   */
  match(facts: Facts, project: Project): Matched[] {
    const matched: Matched[] = []
    if (facts.preflight) return matched
    const bucket = this.#bucket(facts, project)
    if (bucket !== undefined) matched.push(bucket)
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

  #bucket(facts: Facts, project: Project): Matched | undefined {
    const table =
      this.#projects.get(project.id) ?? this.#columns.get(columnName(project.plan, project.environment))
    const found = table?.buckets.findFor(facts)
    const rule = found && table?.rules.get(found.value)
    return rule && { rule, route: found.route }
  }
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
