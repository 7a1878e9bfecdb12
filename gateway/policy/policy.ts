/** The compiled policy: one immutable snapshot that says which rules apply to a request. Pure. */
import type { BucketConfig } from '../../config/words/bucket.js'
import { columnName } from '../../config/words/words.js'
import type { Facts, Matched, Mode, Project, Rule } from '../types.js'
import type { ModesForNow } from './modes.js'
import { type NegotiatedLimit, type NegotiatedLimits, NO_LIMITS } from './negotiated.js'
import { parsePattern } from './pattern.js'
import { type QuotaForNow, QuotasForNow } from './quotas.js'
import type { Routes } from './routes.js'
import { tableFor } from './shares-and-trials.js'
import type { PathTrie } from './trie.js'
import { factsWith, ownReading, readForUpstream, type UpstreamReading } from './upstream-reading.js'
import type { WrittenWhen } from './when.js'

/**
 * Pattern → bucket name, for buckets with a quota here: requests of other buckets fall into the next less specific one.
 * Report-only buckets are kept apart, so that they take no requests from enforced ones.
 */
export type BucketTries = Readonly<Record<Mode, PathTrie<string>>>

export type BucketRule = Rule<BucketConfig>

/** The buckets of one (plan, environment), or of one project with overrides. */
export interface Table {
  readonly rules: ReadonlyMap<string, BucketRule>
  readonly buckets: BucketTries
  /** By bucket: the quota that is tried beside its own. Absent if there is none. */
  readonly trials?: ReadonlyMap<string, BucketRule> | undefined
  /**
   * The table for projects outside the smallest share among the rules. Absent if all rules are in force for all
   * projects.
   */
  readonly outside?: { readonly percent: number; readonly table: Table } | undefined
}

/** A declared bucket; its quotas are in the tables. */
export interface Bucket {
  readonly name: string
  readonly patterns: readonly string[]
  /** The mode of the file that declares it. */
  readonly mode: Mode
}

/** A rule outside the buckets, with the patterns it looks at. */
export interface EndpointRule {
  readonly rule: Rule
  readonly match: readonly string[]
  /** As written; the rule holds it as tests. */
  readonly when?: WrittenWhen | undefined
}

export interface PolicyParts {
  /** Changes whenever something changes that decides about requests. */
  readonly revision: string
  /** By `columnName`. */
  readonly columns: ReadonlyMap<string, Table>
  /** The tables of projects with overrides, by id. */
  readonly projects: ReadonlyMap<string, Table>
  /** Lays limits of one project over its table. */
  readonly negotiated: NegotiatedLimits
  /** In the order in which they are written. */
  readonly buckets: readonly Bucket[]
  /** In the order in which they are written. */
  readonly rules: readonly EndpointRule[]
  readonly endpoint: PathTrie<readonly Rule[]>
  /** Host and pattern → name of the upstream. */
  readonly routes: Routes
  /** Path segments that patterns and routes spell out: the parts of a path that a log may show. */
  readonly words: ReadonlySet<string>
  /** How upstreams read requests, by name; only those that do not read them as they are matched. */
  readonly readings: ReadonlyMap<string, UpstreamReading>
}

export type Policy = ReturnType<typeof createPolicy>

/** What the admin port has set for now, in place of what the files say; what it has not set is absent. */
export interface ForNow {
  readonly modes?: ModesForNow | undefined
  readonly quotas?: readonly QuotaForNow[] | undefined
}

export function createPolicy(parts: PolicyParts, forNow: ForNow = {}) {
  const { readings, endpoint, negotiated, ...identity } = parts
  const { modes } = forNow
  const quotas = forNow.quotas && new QuotasForNow(forNow.quotas, negotiated)
  const anyReads = identity.rules.some(({ rule }) => rule.reads)
  const rules = modes ? identity.rules.map(one => ({ ...one, rule: modes.rule(one.rule) })) : identity.rules

  /** The buckets that count for a project. */
  function tableOf(project: Project): Table | undefined {
    const written = writtenFor(project)
    const table = tableFor(quotas ? quotas.table(project, written) : written, project.id)
    return table && modes ? modes.table(table) : table
  }

  /** The buckets as the files say them, in force for all projects. */
  function writtenFor({ id, plan, environment }: Project): Table | undefined {
    return identity.projects.get(id) ?? identity.columns.get(columnName(plan, environment))
  }

  /** Why a limit set for a project would have no effect, as a sentence; undefined if it has one. */
  function faultOfLimit(project: Project, limit: NegotiatedLimit): string | undefined {
    const column = columnName(project.plan, project.environment)
    return negotiated.faultForNow(limit, writtenFor(project) ?? NO_LIMITS, column)
  }

  /**
   * The rules that apply: at most one enforced and one report-only bucket, each with its trial, then every endpoint
   * rule whose `when` holds. A CORS preflight is a request like others, as any client can send its fields.
   */
  function match(facts: Facts, project: Project): Matched[] {
    const matched: Matched[] = []
    const table = tableOf(project)
    if (table !== undefined) {
      addBucket(matched, table, 'enforce', facts)
      addBucket(matched, table, 'report-only', facts)
    }
    addRules(matched, facts, project)
    return matched
  }

  /** The endpoint rules whose patterns match, whatever their `when`. */
  function looking(facts: Facts): Matched[] {
    const found: Matched[] = []
    addRules(found, facts)
    return found
  }

  /** Without a project, `when` is not checked. */
  function addRules(matched: Matched[], facts: Facts, project?: Project): void {
    const reads = isRead(facts)
    if (reads && !anyReads) return
    for (const { value, route } of endpoint.findAllFor(facts)) {
      for (const written of value) {
        const rule = modes ? modes.rule(written) : written
        if ((reads && !rule.reads) || matched.some(one => one.rule === rule)) continue
        if (project === undefined || holds(rule.when, facts, project)) matched.push({ rule, route })
      }
    }
  }

  const own = ownReading(readings)

  /**
   * The facts as they are matched and counted for an upstream, or for the gateway itself. @throws {GatewayError} if it could read them otherwise
   */
  function readFor(facts: Facts, upstream: string | undefined, project?: Project): Facts {
    const reading = upstream === undefined ? own : readings.get(upstream)
    return factsWith(facts, readForUpstream(facts, reading), project?.verified ?? false)
  }

  /** A rule of the files with the mode that holds now. */
  const current = <Config>(rule: Rule<Config>): Rule<Config> => modes?.rule(rule) ?? rule

  return { ...identity, rules, parts, forNow, match, looking, readFor, tableOf, faultOfLimit, current }
}

/**
 * True when the rule leaves this request out: GET, HEAD and OPTIONS are exempt from endpoint-based limits (spec,
 * 'Limits').
 */
export function isExempt(rule: Rule, facts: Facts): boolean {
  return !rule.reads && isRead(facts)
}

function holds(when: Rule['when'], facts: Facts, project: Project): boolean {
  if (when === undefined) return true
  for (const condition of when) if (!condition.holds(facts, project)) return false
  return true
}

function addBucket(matched: Matched[], { rules, buckets, trials }: Table, mode: Mode, facts: Facts): void {
  const found = buckets[mode].findFor(facts)
  if (found === undefined) return
  const rule = rules.get(found.value)
  if (rule !== undefined) matched.push({ rule, route: found.route })
  const trial = trials?.get(found.value)
  if (trial !== undefined) matched.push({ rule: trial, route: found.route })
}

/** What `methodsOf` says of a rule that counts messages. */
export const MESSAGES = 'the messages of WebSockets'

/** Which methods an endpoint rule counts, for people: `POST and PATCH`, `every method but GET, HEAD and OPTIONS`. */
export function methodsOf({ rule: { reads = false, countsMessages }, match }: EndpointRule): string {
  if (countsMessages) return MESSAGES
  const methods = match.map(text => parsePattern(text).method)
  if (methods.includes(undefined)) return reads ? 'every method' : `every method but ${named(READS)}`
  const written = [...new Set(methods as string[])]
  const counted = written.filter(method => reads || !READS.includes(method))
  if (counted.length > 0) return named(counted)
  return written.includes('GET') ? 'only the GET that opens a WebSocket' : 'no method'
}

/** `A, B and C`. */
function named(methods: readonly string[]): string {
  return methods.join(', ').replace(/, ([^,]*)$/, ' and $1')
}

/** Exempt from endpoint-based limits unless a rule says `reads: true` (spec, 'Limits'). */
export const READS = ['GET', 'HEAD', 'OPTIONS']

/** A GET that opens a WebSocket is not a read: it occupies the upstream like a write. */
function isRead({ method, upgrade }: Facts): boolean {
  return !upgrade && READS.includes(method)
}
