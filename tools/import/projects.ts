/** Projects, plans and identifiers of an imported configuration: projects.yaml, and who is identified how. */
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import { From } from './yaml.js'

export interface ProjectParts {
  readonly id: string
  readonly plan?: string
  readonly hosts?: readonly string[]
  readonly apiKeyHashes?: readonly string[]
}

/** The plan and environment of all projects without their own. */
export const ANY_PLAN = 'any'
const environment = 'live'
/** Name of the bucket with every request, for plans whose limit holds on all routes. */
const EVERYWHERE = 'everywhere'
/** A file has at most 100, and some are made for projects with limits of their own. */
const MOST_PLANS = 90

export class ImportedProjects {
  /** Plans with one limit for everything, by name. */
  readonly planQuotas = new Map<string, object>()
  readonly #into: Migration
  readonly #projects = new Map<string, { readonly at: Origin; plan: string; readonly more: object }>()
  readonly #byHost = new Map<string, string>()
  readonly #plans = new Set([ANY_PLAN])
  #identify: (string | object)[] = ['host']
  #unknown: 'reject' | string | undefined

  constructor(into: Migration) {
    this.#into = into
  }

  /** The projects of hosts: hosts that appear together are one project. */
  ofHosts(hosts: readonly string[], at: Origin): string[] {
    const fresh = [...new Set(hosts)].filter(host => !this.#byHost.has(host))
    const [id] = fresh
    if (id !== undefined && this.add({ id, hosts: fresh }, at))
      for (const host of fresh) this.#byHost.set(host, id)
    return [...new Set(hosts.flatMap(host => this.#byHost.get(host) ?? []))]
  }

  /** False, after reporting it, when such a project is invalid. */
  add({ id, plan = ANY_PLAN, ...more }: ProjectParts, at: Origin): boolean {
    if (this.#projects.has(id)) return true
    const document = { version: 1, projects: [{ id, plan, environment, ...more }] }
    if (!this.#into.isSound('projects', document, at)) return false
    this.#plans.add(plan)
    this.#projects.set(id, { at, plan, more })
    return true
  }

  identifyBy(plugin: string | object): void {
    this.#identify = [plugin, ...this.#identify.filter(one => JSON.stringify(one) !== JSON.stringify(plugin))]
  }

  rejectUnknown(): void {
    this.#unknown = 'reject'
  }

  countUnknownAs(plan: string): void {
    this.#plans.add(plan)
    this.#unknown ??= plan
  }

  /** Declares a plan with one limit for everything. @returns its name, or undefined when there are too many */
  plan(name: string, quota: object): string | undefined {
    if (this.#plans.size > MOST_PLANS) return undefined
    const plan = this.#newPlan(name)
    this.planQuotas.set(plan, quota)
    return plan
  }

  #newPlan(name: string): string {
    let plan = wordFrom(name)
    while (this.#plans.has(plan)) plan = `${plan.slice(0, 60)}-${this.#plans.size}`
    this.#plans.add(plan)
    return plan
  }

  /** @param isNamed whether every route names its hosts */
  settings(isNamed: boolean): object {
    const plan = this.#unknown ?? (isNamed && this.#byHost.size > 0 ? 'reject' : ANY_PLAN)
    // As one consumer, which Kong makes of them.
    const together = this.#unknown === undefined ? {} : { countBy: 'together' }
    const unknownProject = plan === 'reject' ? plan : { plan, environment, ...together }
    return { identify: this.#identify, unknownProject }
  }

  givePlans(ids: readonly string[]): ReadonlyMap<string, string> {
    const given = new Map(ids.map(id => [id, this.#newPlan(id)]))
    for (const [id, plan] of given) {
      const project = this.#projects.get(id)
      if (project !== undefined) project.plan = plan
    }
    return given
  }

  plansBesides(plans: readonly string[]): string[] {
    const others = [...this.#plans].filter(plan => !plans.includes(plan))
    return others.length === this.#plans.size ? [] : others
  }

  /**
   * The sections of a policy file, with a row for each plan that has one limit for everything.
   *
   * @param present the bucket of every path, if there is one: two would tie
   */
  withOwnPlans(document: object, present: string | undefined): object {
    if (this.planQuotas.size === 0) return document
    const { buckets, limits } = document as { buckets: object; limits: readonly object[] }
    const bucket = present ?? EVERYWHERE
    const own = [...this.planQuotas].map(([plan, quota]) => ({
      for: [{ plans: [plan] }],
      quotas: { [bucket]: quota },
    }))
    const all = present === undefined ? { ...buckets, [EVERYWHERE]: ['*'] } : buckets
    return { ...document, buckets: all, limits: [...limits, ...own] }
  }

  document(): object {
    const projects = [...this.#projects].map(
      ([id, { at, plan, more }]) => new From(this.#into.placeOf(at), { id, plan, environment, ...more }),
    )
    return { plans: [...this.#plans], environments: [environment], projects }
  }
}

function wordFrom(text: string): string {
  const word = text.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64)
  return /^[A-Za-z0-9]/.test(word) ? word : `p${word.slice(0, 63)}`
}
