/**
 * Limits of other gateways as buckets: a request belongs to the most specific one, as to one location, route or router
 * there. A pattern is in one bucket; a server's own limits are in a plan of its own.
 */
import { type Algorithm, UNLIMITED } from '../../config/words/words.js'
import { widerThan } from './places.js'

export interface BucketParts {
  readonly name: string
  readonly match: readonly string[]
  readonly key: 'project' | 'client-ip'
  readonly quota: object
  /** Equal for limits that count together. */
  readonly counter: string
  /** Ids of projects to which the limit belongs; none: all. */
  readonly projects: readonly string[]
}

interface ImportedBucket {
  readonly match: readonly string[]
  readonly counter: string
  key: readonly string[]
}

/** A plan for every server; projects.yaml declares at most a hundred. */
const MOST_OWNERS = 90
const MOST_PATTERNS = 1000
/** The owner of quotas that hold for all projects. */
const EVERYBODY = ''
const scopesOf = (projects: readonly string[]): readonly string[] =>
  projects.length === 0 ? [EVERYBODY] : projects

export class ImportedBuckets {
  readonly #buckets = new Map<string, ImportedBucket>()
  readonly #owners = new Map<string, string>()
  /** Quotas by project. */
  readonly #quotas = new Map<string, Map<string, object | string>>()
  readonly #places: { readonly pattern: string; readonly projects: readonly string[] }[] = []
  isClosed = false

  get isEmpty(): boolean {
    return this.#buckets.size === 0
  }

  ownerOf(pattern: string): string | undefined {
    return this.#owners.get(pattern)
  }

  /** Records an open place, whatever limits it has. */
  place(pattern: string, projects: readonly string[]): void {
    this.#places.push({ pattern, projects })
  }

  /** @returns false when the limit fits no bucket: another one has some of its patterns. */
  add({ name, match, key, quota, counter, projects }: BucketParts): boolean {
    const owners = new Set(match.map(pattern => this.#owners.get(pattern)))
    const [owner] = owners
    if (owners.size > 1) return false
    const present = owner === undefined ? undefined : this.#buckets.get(owner)
    const scopes = scopesOf(projects)
    if (present !== undefined && owner !== undefined) {
      const isSame = present.match.length === match.length && present.key.at(-1) === key
      const isTaken = scopes.some(scope => this.#quotas.get(scope)?.has(owner))
      if (!isSame || isTaken || projects.length === 0) return false
    }
    if (scopes.some(scope => !this.#quotas.has(scope)) && this.#quotas.size >= MOST_OWNERS) return false
    const bucket = owner ?? name
    if (present === undefined) this.#buckets.set(bucket, { match, counter, key: [key] })
    else if (present.counter !== counter) present.key = ['project', 'client-ip']
    for (const pattern of match) this.#owners.set(pattern, bucket)
    for (const scope of scopes) this.#quotasOf(scope).set(bucket, quota)
    return true
  }

  #quotasOf(scope: string): Map<string, object | string> {
    const known = this.#quotas.get(scope) ?? new Map<string, object | string>()
    this.#quotas.set(scope, known)
    return known
  }

  /** Places without a limit fall into no less specific bucket. @param free a name for the bucket of all such places */
  exemptRest(free: string): void {
    const without = new Set<string>()
    for (const { pattern, projects } of this.#places) {
      for (const scope of scopesOf(projects)) {
        if (!this.#isCovered(pattern, scope)) continue
        const owner = this.#owners.get(pattern)
        if (owner === undefined) without.add(pattern)
        else if (!this.#has(scope, owner)) this.#quotasOf(scope).set(owner, UNLIMITED)
      }
    }
    if (without.size === 0 || without.size > MOST_PATTERNS) return
    this.#buckets.set(free, { match: [...without], counter: free, key: ['project'] })
    for (const quotas of [this.#quotasOf(EVERYBODY), ...this.#quotas.values()]) quotas.set(free, UNLIMITED)
  }

  #has(scope: string, bucket: string): boolean {
    return this.#quotas.get(scope)?.has(bucket) === true || this.#quotas.get(EVERYBODY)?.has(bucket) === true
  }

  /** True when a wider pattern with a limit would take the requests of `pattern`. */
  #isCovered(pattern: string, scope: string): boolean {
    for (const wider of widerThan(pattern)) {
      const owner = this.#owners.get(wider)
      if (owner !== undefined && this.#has(scope, owner)) return true
    }
    return false
  }

  get owners(): readonly string[] {
    return [...this.#quotas.keys()].filter(scope => scope !== EVERYBODY)
  }

  /** The sections of the policy file. @param plans those without quotas of their own; none: all */
  document(planOf: (project: string) => string, plans: readonly string[]): object {
    const common = Object.fromEntries(this.#quotas.get(EVERYBODY) ?? [])
    const buckets = [...this.#buckets].map(([name, { match, key }]) => [
      name,
      key.join() === 'project' ? match : { match, key },
    ])
    const own = this.owners.map(project => ({
      for: [{ plans: [planOf(project)] }],
      quotas: { ...common, ...Object.fromEntries(this.#quotas.get(project) ?? []) },
    }))
    return {
      ...(this.isClosed && { onStoreError: 'closed' }),
      buckets: Object.fromEntries(buckets),
      limits: [{ for: plans.length === 0 ? [{}] : [{ plans }], quotas: common }, ...own],
    }
  }
}

/** The `quota` of a volumetric rule. */
export interface WindowQuota {
  readonly requests: number
  readonly per: string
}

const DAY = 86_400
const LONGEST_BUCKET = 31 * DAY
const MOST = 1_000_000_000

/**
 * The shortest window of whole seconds in which `rate` (requests per second) amounts to at least `atOnce`: this
 * preserves the rate and, except for rounding, the burst. Undefined when it is longer than a day.
 */
export function windowOf(rate: number, atOnce: number): WindowQuota | undefined {
  const { requests, seconds } = windowAt(rate, atOnce)
  return seconds <= DAY && requests <= MOST ? { requests, per: `${seconds}s` } : undefined
}

/** A token bucket of a project-limits bucket, which holds `requests` and refills them in `seconds`. */
export interface ImportedTokenBucket {
  readonly requests: number
  readonly seconds: number
  /** True when both its size and its rate are as asked. */
  readonly isExact: boolean
  readonly quota: object
}

/** Undefined when it would be too large or too slow. */
export function tokenBucketOf(rate: number, atOnce: number): ImportedTokenBucket | undefined {
  const { requests, seconds } = windowAt(rate, atOnce)
  if (!(seconds <= LONGEST_BUCKET && requests <= MOST)) return undefined
  const isExact = requests === atOnce && Math.abs(rate * seconds - requests) < 1e-6
  return { requests, seconds, isExact, quota: quotaOf([{ name: 'rate', seconds, requests }], 'token-bucket') }
}

/** A window of a bucket; those of a second and a minute become burst and sustained. */
export interface ImportedWindow {
  readonly name: string
  readonly seconds: number
  readonly requests: number
  /** Set for a period of the calendar, in UTC. */
  readonly calendar?: 'day' | 'month'
}

/** All windows together, as the quota of a bucket. */
export function quotaOf(windows: readonly ImportedWindow[], algorithm: Algorithm): object {
  const [burst, sustained] = [1, 60].map(length => windows.find(({ seconds }) => seconds === length))
  const longer = windows
    .filter(({ seconds }) => seconds !== 1 && seconds !== 60)
    .map(({ name, seconds, requests, calendar }) => ({ name, requests, per: calendar ?? `${seconds}s` }))
  return {
    ...(burst !== undefined && { burst: burst.requests }),
    ...(sustained !== undefined && { sustained: sustained.requests }),
    ...(longer.length > 0 && { windows: longer }),
    algorithm,
  }
}

function windowAt(rate: number, atOnce: number): { requests: number; seconds: number } {
  // A rate such as 5 per minute has no exact binary form: without the margin its window would be a second too long.
  const seconds = Math.max(1, Math.ceil(atOnce / rate - 1e-9))
  return { requests: Math.max(1, Math.floor(rate * seconds + 1e-9)), seconds }
}
