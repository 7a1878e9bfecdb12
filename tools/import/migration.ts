/**
 * Collects the result of importing another gateway's configuration: files that `sluice check` accepts, and what they
 * cannot express.
 */
import { basename } from 'node:path'
import { UNSAFE_KEYS } from '../../config/yaml.js'
import { printable } from '../text.js'
import {
  type BucketParts,
  ImportedBuckets,
  type ImportedTokenBucket,
  tokenBucketOf,
  windowOf,
} from './buckets.js'
import { Doors, type OpenPlace } from './doors.js'
import { Findings, faultIn, type Origin } from './findings.js'
import { asRequested, isWildcard, type MatchedPlace, twinOf } from './places.js'
import { ANY_PLAN, ImportedProjects } from './projects.js'
import { routesTo } from './routes.js'
import { ImportedRules, type RuleParts } from './rules.js'
import { ImportedUpstreams } from './upstreams.js'
import { From, yamlText } from './yaml.js'

/** A rate in requests per second, and how many pass at once. */
interface LimitedRate {
  readonly rate: number
  readonly atOnce: number
  /** Equal for limits that count together. */
  readonly counter: string
  /** Where the other gateway differs, as the end of a sentence. */
  readonly theirs: string
  /** How often a token bucket lets more pass. */
  refilled(token: ImportedTokenBucket): string
  /** What is left out where the window would be too long. */
  readonly tooLong: string
  /** True where a window of one request is the same. */
  readonly isSameAsOne: boolean
}

const MOST_PATTERNS = 1000

export class Migration extends Findings {
  readonly projects = new ImportedProjects(this)
  readonly rules = new ImportedRules(this)
  readonly upstreams = new ImportedUpstreams(this)
  readonly #file: string
  readonly #names = new Map<string, Map<string, number>>()
  readonly #doors = new Doors()
  readonly #buckets = new ImportedBuckets()
  readonly #trusted = new Set<string>()
  #redis: string | undefined

  constructor(file: string) {
    super(file)
    this.#file = file
  }

  /** A valid name for an upstream, or for a rule or bucket; a different one for each call. */
  nameFor(kind: 'upstream' | 'rule', text: string): string {
    const taken = this.#names.get(kind) ?? new Map<string, number>()
    this.#names.set(kind, taken)
    const plain = plainName(text)
    let name = plain
    let i = taken.get(plain) ?? 0
    for (; i > 0 && taken.has(name); i++) name = `${plain.slice(0, 58)}-${i + 1}`
    taken.set(plain, Math.max(1, i))
    if (name !== plain) taken.set(name, 1)
    return name
  }

  /** Gives a place its route. @returns false, after reporting it, when no route can have its paths */
  open(place: Omit<OpenPlace, 'at' | 'twin'>, at: Origin): boolean {
    const patterns = place.patterns.filter(pattern => this.isPattern(pattern, at))
    if (patterns.length === 0) return false
    if (place.methods?.includes('GET') && !place.methods.includes('HEAD'))
      this.changedOnce(at, 'a route for GET takes HEAD, too, wherever that went or was refused before.')
    this.#doors.open({ ...place, patterns, at, ...twinOf(place) })
    return true
  }

  /** Closes a place, and says so. @param what how it was guarded, such as `closed to all but 10.0.0.0/8` */
  close(place: MatchedPlace, what: string, at: Origin): void {
    this.#doors.close(place, what, at, true)
  }

  /** Closes a place whose requests went elsewhere, where another route would take them. */
  divert(place: MatchedPlace, what: string, at: Origin): void {
    this.#doors.close(place, what, at, false)
  }

  /** Records a place whatever limits it has. */
  place(match: readonly string[], projects: readonly string[]): void {
    this.rules.overlaps.add(match, projects)
    for (const pattern of match) this.#buckets.place(pattern, projects)
  }

  trust(networks: readonly string[], at: Origin): void {
    for (const network of networks) {
      const rule = { id: 'one', mode: 'enforce', networks: [network], action: 'exempt' }
      if (/\/0$/.test(network)) {
        const why = 'every client could choose its address. Name your proxies under trustedProxies.'
        this.lost(at, `"${network}" as a trusted proxy: ${why}`)
      } else if (this.isSound('access', { version: 1, kind: 'access', rules: [rule] }, at))
        this.#trusted.add(network)
    }
  }

  useRedis(url: string): void {
    this.#redis ??= url
  }

  /** Adds a limit as a bucket; false when it fits none, because others have some of its patterns. */
  bucket(parts: BucketParts & { readonly onStoreError?: 'closed' }, at: Origin): boolean {
    const match = this.patternsOf(parts.match, at)
    if (match.length === 0 || match.length > MOST_PATTERNS) return false
    const limits = [{ for: [{}], quotas: { a: parts.quota } }]
    const document = { version: 1, kind: 'project-limits', buckets: { a: match }, limits }
    if (faultIn('project-limits', document) !== undefined) return false
    const isAdded = this.#buckets.add({ ...parts, match, name: this.nameFor('rule', parts.name) })
    if (isAdded && parts.onStoreError === 'closed') this.#buckets.isClosed = true
    return isAdded
  }

  /**
   * Adds a limit by rate: as a bucket where it counts by address alone, else as a rule with a window. Reports how it
   * differs. @returns whether it is the same
   */
  limitRate(
    parts: RuleParts & { readonly projects: readonly string[] },
    limit: LimitedRate,
    at: Origin,
  ): boolean {
    const { rate, atOnce, counter, theirs } = limit
    const token = tokenBucketOf(rate, atOnce)
    const isByClient = parts.key.join() === 'client-ip' && !parts.reportOnly && parts.networks === undefined
    if (token !== undefined && isByClient) {
      const { name, match, projects } = parts
      if (this.bucket({ name, match, projects, key: 'client-ip', quota: token.quota, counter }, at)) {
        const ours = `up to ${token.requests} pass at once and then ${limit.refilled(token)}`
        if (!token.isExact) this.changed(at, `${ours}, ${theirs}`)
        return token.isExact
      }
    }
    const quota = windowOf(rate, atOnce)
    if (quota === undefined) {
      this.leftOut(at, limit.tooLong)
      return false
    }
    const ours = `up to ${quota.requests} pass at once and no more until ${quota.per} after the first`
    if (!limit.isSameAsOne || quota.requests > 1) this.changed(at, `${ours}, ${theirs}`)
    this.rules.meter({ ...parts, quota }, at)
    return false
  }

  ownerOf(pattern: string): string | undefined {
    return this.#buckets.ownerOf(pattern)
  }

  placeOf({ line, file = this.#file }: Origin): string {
    return printable(`${basename(file)}:${line}`)
  }

  /** The texts by file name, without files that would be empty. */
  files(): ReadonlyMap<string, string> {
    const rules = this.rules.byKind()
    for (const { at, patterns } of this.rules.overlaps.found()) {
      const which = patterns.slice(0, 3).join(', ') + (patterns.length > 3 ? ', …' : '')
      this.changed(
        at,
        `this rule counts requests of ${which}, too: every rule that matches a request applies.`,
      )
    }
    const files = new Map<string, string>()
    const add = (name: string, document: object): void => {
      files.set(name, yamlText({ version: 1, ...document }))
    }
    const gateway = this.#gateway()
    this.#buckets.exemptRest(this.nameFor('rule', 'not-limited'))
    add('gateway.yaml', gateway)
    const plans = this.projects.givePlans(this.#buckets.owners)
    add('projects.yaml', this.projects.document())
    for (const [kind, some] of rules) add(`policies/${kind}.yaml`, { kind, rules: some })
    const ownPlans = this.projects.planQuotas
    if (!this.#buckets.isEmpty || ownPlans.size > 0) {
      const others = this.projects.plansBesides([...plans.values(), ...ownPlans.keys()])
      const limits = this.#buckets.document(project => plans.get(project) ?? ANY_PLAN, others)
      const document = this.projects.withOwnPlans(limits, this.ownerOf('/**'))
      add('policies/project-limits.yaml', { kind: 'project-limits', ...document })
    }
    return files
  }

  #gateway(): object {
    const resolved = this.#doors.resolve(this)
    const routes = routesTo(resolved.open, this)
    const start = { line: 1, col: 1 }
    const isShut = routes.length === 0
    const closed = isShut ? [{ prefix: '/' }] : resolved.closed
    if (isShut) this.lost(start, 'no route is left, so everything is under "closed" and answers 404.')
    if (this.upstreams.isEmpty) this.upstreams.addUnknown()
    if (isShut) routes.push(new From(this.placeOf(start), { path: '/**', upstream: this.upstreams.first }))
    const isNamed =
      resolved.open.length > 0 &&
      resolved.open.every(({ hosts }) => hosts.length > 0 && !hosts.some(isWildcard))
    return {
      ...(this.#redis !== undefined && { redis: this.#redis }),
      upstreams: this.upstreams.document(),
      routes,
      ...(closed.length > 0 && { closed: closed.flatMap(asRequested) }),
      ...this.projects.settings(isNamed),
      ...(this.#trusted.size > 0 && { trustedProxies: [...this.#trusted] }),
    }
  }
}

const LONGEST_NAME = 64

/** `listItems` → `list-items`, `/items/{id}` → `items-id`. */
export function plainName(text: string): string {
  const words = text
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-$/g, '')
  const name = words.slice(0, LONGEST_NAME).replace(/-$/, '') || 'root'
  return UNSAFE_KEYS.has(name) ? `${name}-bucket` : name
}
