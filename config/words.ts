/** The closed lists of words that configuration, policies and answers are written in. Imports nothing: every room may know it. */

export const PLANS = ['developer', 'production', 'essential', 'growth', 'scale', 'enterprise'] as const
export type Plan = (typeof PLANS)[number]

export const ENVIRONMENTS = ['development', 'staging', 'production'] as const
export type Environment = (typeof ENVIRONMENTS)[number]

/** `growth/production`: the name of one column of the spec's tables. */
export function columnName(plan: Plan, environment: Environment): string {
  return `${plan}/${environment}`
}

/** The columns that a row's `for` list covers; what a selector leaves out stands for all. */
export function columnsOf(
  selectors: readonly { readonly plans?: readonly Plan[]; readonly environments?: readonly Environment[] }[],
): Set<string> {
  return new Set(
    selectors.flatMap(({ plans = PLANS, environments = ENVIRONMENTS }) =>
      plans.flatMap(plan => environments.map(environment => columnName(plan, environment))),
    ),
  )
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
