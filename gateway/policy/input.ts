/** What a policy is compiled from: the configuration's documents, as they were read. Types only. */
import type { BucketEntry } from '../../config/words/bucket.js'
import type { QuotaEntry, QuotaOverride } from '../../config/words/quota.js'
import type { PlanWords, Selector } from '../../config/words/words.js'
import type { Environment, Mode, OnStoreError, Plan, Rule, Source } from '../types.js'
import type { ClosedEntry } from './routes.js'
import type { UpstreamReading } from './upstream-reading.js'
import type { WrittenWhen } from './when.js'

/** A policy file of kind project-limits. */
export interface ProjectLimits {
  readonly file: string
  readonly mode: Mode
  readonly enforceFor?: number | undefined
  readonly onStoreError: OnStoreError
  readonly buckets: Readonly<Record<string, BucketEntry>>
  readonly limits: readonly {
    readonly for: readonly Selector[]
    readonly quotas: Readonly<Record<string, QuotaEntry>>
  }[]
}
/** A policy file of endpoint rules; `kind` names the limit plugin that reads their config. */
export interface EndpointRules {
  readonly file: string
  readonly kind: string
  /** Whether its rules look at GET, HEAD and OPTIONS too. */
  readonly limitsReads?: boolean
  readonly rules: readonly (Omit<Rule, 'kind' | 'source' | 'config' | 'share' | 'when'> & {
    readonly match: readonly string[]
    readonly enforceFor?: number | undefined
    readonly when?: WrittenWhen | undefined
  })[]
}
export interface PolicyInput {
  readonly projectLimits: readonly ProjectLimits[]
  readonly endpointRules: readonly EndpointRules[]
  readonly projects: readonly {
    readonly id: string
    readonly plan: Plan
    readonly environment: Environment
    readonly overrides: Readonly<Record<string, QuotaOverride>>
  }[]
  readonly projectsFile: string
  readonly planWords: PlanWords
  readonly routes: readonly {
    readonly host?: string | undefined
    readonly path: string
    readonly upstream: string
  }[]
  readonly closed?: readonly ClosedEntry[]
  readonly routesFile: string
  readonly revision: string
  /** How upstreams read requests, by name of the upstream; only those that do not read them as they are matched. */
  readonly readings: ReadonlyMap<string, UpstreamReading>
  sourceOf(file: string, path: readonly (string | number)[]): Source
}
