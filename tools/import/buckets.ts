/**
 * Limits of other gateways as buckets: a request belongs to the most specific one, as to one location, route or router
 * there. A pattern stands in one bucket; a server's own limits are in a plan of its own.
 */
import { UNLIMITED } from '../../config/words/words.js'
import { widerThan } from './paths.js'

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

interface Bucket {
  readonly match: readonly string[]
  readonly counter: string
  key: readonly string[]
}

/** A plan for every server; projects.yaml declares at most a hundred. */
const MOST_OWNERS = 90
/** A bucket has at most so many patterns. */
const MOST_PATTERNS = 1000
const EVERYBODY = ''

export class Buckets {
  readonly #buckets = new Map<string, Bucket>()
  /** The bucket of each pattern. */
  readonly #owners = new Map<string, string>()
  /** Quotas by project; those of everybody under ''. */
  readonly #quotas = new Map<string, Map<string, object | string>>()
  readonly #places: { readonly pattern: string; readonly projects: readonly string[] }[] = []
  isClosed = false

  get isEmpty(): boolean {
    return this.#buckets.size === 0
  }

  /** The name of the bucket that a pattern is in. */
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
    const scopes = projects.length === 0 ? [EVERYBODY] : projects
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
      for (const scope of projects.length === 0 ? [EVERYBODY] : projects) {
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

  /** The projects with quotas of their own, and the sections of the policy file. @param planOf the plan of a project */
  document(planOf: (project: string) => string, plans: readonly string[]): object {
    const common = Object.fromEntries(this.#quotas.get(EVERYBODY) ?? [])
    const own = [...this.#quotas].filter(([scope]) => scope !== EVERYBODY)
    return {
      ...(this.isClosed && { onStoreError: 'closed' }),
      buckets: Object.fromEntries(
        [...this.#buckets].map(([name, { match, key }]) => [
          name,
          key.join() === 'project' ? match : { match, key },
        ]),
      ),
      limits: [
        { for: plans.length === 0 ? [{}] : [{ plans }], quotas: common },
        ...own.map(([project, quotas]) => ({
          for: [{ plans: [planOf(project)] }],
          quotas: { ...common, ...Object.fromEntries(quotas) },
        })),
      ],
    }
  }

  get owners(): readonly string[] {
    return [...this.#quotas.keys()].filter(scope => scope !== EVERYBODY)
  }
}
