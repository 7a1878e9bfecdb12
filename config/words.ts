/** The words that configuration, policies and answers are written in. Imports nothing: every room may know it. */

/** The plans and environments of the spec ('Project rate limits'), which count where projects.yaml declares none. */
export const PLANS = ['developer', 'production', 'essential', 'growth', 'scale', 'enterprise'] as const
export const ENVIRONMENTS = ['development', 'staging', 'production'] as const

/** Words that projects.yaml declares. */
export type Plan = string
export type Environment = string

/** The plans and environments that projects.yaml declares, in its order. */
export interface PlanWords {
  readonly plans: readonly Plan[]
  readonly environments: readonly Environment[]
}

/** What a row or rule is for; what is left out stands for all. */
export type Selector = Partial<PlanWords>

/** `growth/production`: the name of one column of the spec's tables. Neither word holds a "/". */
export function columnName(plan: Plan, environment: Environment): string {
  return `${plan}/${environment}`
}

/** The columns that a row's `for` list covers. */
export function columnsOf(selectors: readonly Selector[], words: PlanWords): Set<string> {
  const columns = new Set<string>()
  for (const { plans = words.plans, environments = words.environments } of selectors) {
    for (const plan of plans) {
      for (const environment of environments) columns.add(columnName(plan, environment))
    }
  }
  return columns
}

/** `unknownProject` of gateway.yaml: a plan of the spec, in its production environment; a column of one's own; or `reject`. */
export type UnknownProject = string | { readonly plan: Plan; readonly environment: Environment }

/** Where requests of unknown projects are counted; undefined where they are rejected. */
export function columnOfUnknown(setting: UnknownProject) {
  if (setting === 'reject') return undefined
  return typeof setting === 'string' ? { plan: setting, environment: 'production' } : setting
}

/** `enforce` refuses requests over the limit, `report-only` lets them pass and logs them. */
export const MODES = ['enforce', 'report-only'] as const
export type Mode = (typeof MODES)[number]

/** What a rule does while the counter store is away. */
export const ON_STORE_ERROR = ['local', 'open', 'closed'] as const
export type OnStoreError = (typeof ON_STORE_ERROR)[number]

/** What a rule does when a part of its key is absent from the request. */
export const MISSING = ['skip', 'shared', 'deny'] as const
export type Missing = (typeof MISSING)[number]

/**
 * How a window counts. `sliding-window`: no interval of its length admits more than the quota. `fixed-window`: begins with
 * the first request and ends whole. `token-bucket`: holds the quota when full and refills evenly.
 */
export const ALGORITHMS = ['sliding-window', 'fixed-window', 'token-bucket'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** What an access entry does: `exempt` lifts every limit, `deny` refuses. */
export const ACCESS_ACTIONS = ['exempt', 'deny'] as const
export type AccessAction = (typeof ACCESS_ACTIONS)[number]
/** The periods of the calendar that a window may be of; weeks begin on Monday. */
export const CALENDAR_UNITS = ['day', 'week', 'month'] as const
export type CalendarUnit = (typeof CALENDAR_UNITS)[number]

/** In place of a quota: nothing is counted. */
export const UNLIMITED = 'unlimited'

/** The parts a counter's key is made of, but for the headers it may name. */
export const KEY_PARTS = [
  'project',
  'path',
  'full-path',
  'email-or-flow',
  'client-ip',
  'ja3',
  'ja4',
  'auth',
  'method',
] as const
export type KeyPart = (typeof KEY_PARTS)[number] | `header:${string}`
/** Those a bucket may count by: every request has them. */
export const BUCKET_KEY_PARTS = ['project', 'client-ip'] as const satisfies readonly KeyPart[]
export type BucketKeyPart = (typeof BUCKET_KEY_PARTS)[number]
