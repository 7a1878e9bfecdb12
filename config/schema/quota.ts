/** The shape of a quota in YAML, shared by rows and projects' overrides. */
import { type TSchema, Type } from 'typebox'
import type { Path, UnplacedProblem } from '../problem.js'
import {
  isLifetime,
  MOST_WINDOWS,
  type Quota,
  type QuotaEntry,
  type QuotaOverride,
  type QuotaWindow,
  tooMany,
  windowsOf,
} from '../words/quota.js'
import { ALGORITHMS, CALENDAR_UNITS, LIFETIME, UNLIMITED } from '../words/words.js'
import { Requests, Strict, Word, when } from './fields.js'
import { NotifySchema } from './notify.js'

const PER = 'day, week, month or lifetime, or whole seconds from 1s to 31d, such as 90s, 1h or 7d'
const ALGORITHM_HELP =
  'sliding-window: no interval of the window’s length ever admits more than the quota. fixed-window: a window begins with its first request. token-bucket: refills evenly, so up to twice the quota may pass in one window’s length.'
const LEASE_HELP =
  'Each gateway may take tokens from Redis in advance and spend them locally: fewer calls, never more than the quota, refusals possible from 90 % of it.'

const WindowEntry = Strict({
  name: Type.String({
    pattern: '^(?!(burst|sustained)$)[a-z][a-z0-9_-]{0,31}$',
    expected:
      'a name of at most 32 characters, other than burst and sustained: a lowercase letter, then lowercase letters, digits, "_" or "-"',
    description: 'Name of the window; responses call the policy <bucket>.<window>.',
  }),
  requests: Requests(
    'Requests that the window admits. A lifetime window may have 0: then only credit admits any.',
    {
      minimum: 0,
      expected: 'a whole number from 1 to 1000000000, or 0 with per: lifetime',
    },
  ),
  per: Type.Unsafe<QuotaWindow['per']>({
    type: 'string',
    expected: PER,
    description:
      'A rolling length of time (90s, 1h, 7d; up to 31d), a period of the calendar: day, week (from Monday) or month; or lifetime: it never begins anew, and credit adds to it.',
    ...when(
      { enum: [...CALENDAR_UNITS, LIFETIME] },
      {},
      { duration: { unit: '1s', maximum: '31d' }, expected: PER },
    ),
  }),
  timezone: Type.Optional(
    Type.String({
      format: 'time-zone',
      maxLength: 64,
      expected: 'the name of a time zone, such as UTC or Europe/Berlin',
      description: 'Time zone of a calendar period. Default: UTC.',
    }),
  ),
  algorithm: Type.Optional(
    Word(ALGORITHMS, { description: 'How this rolling window counts. Default: the same as the quota.' }),
  ),
})

const windowProperties = {
  burst: Type.Optional(Requests('Requests per second.')),
  sustained: Type.Optional(Requests('Requests per minute.')),
  windows: Type.Optional(
    Type.Array(WindowEntry, {
      minItems: 1,
      maxItems: MOST_WINDOWS,
      description:
        'Additional windows, of any length. All windows of a quota are charged together or not at all.',
    }),
  ),
}

const TRIAL = {
  minProperties: 1,
  expected: 'a map with burst, sustained or windows',
  description:
    'A quota on trial: it counts every request of the bucket, refused or not, and only reports, as "<bucket>.trial".',
}
const Trial = Type.Optional(
  Strict(
    {
      ...windowProperties,
      algorithm: Type.Optional(Word(ALGORITHMS, { description: 'Default: that of the quota.' })),
    },
    TRIAL,
  ),
)

/** The keys of a whole quota. */
const quotaProperties = {
  ...windowProperties,
  algorithm: Word(ALGORITHMS, { default: 'sliding-window', description: ALGORITHM_HELP }),
  lease: Type.Boolean({ default: false, description: LEASE_HELP }),
  trial: Trial,
  notify: Type.Optional(NotifySchema),
}

const overrideProperties = {
  ...windowProperties,
  algorithm: Type.Optional(Word(ALGORITHMS, { description: ALGORITHM_HELP })),
  lease: Type.Optional(Type.Boolean({ description: LEASE_HELP })),
  trial: Trial,
}

/** An object with these keys, or the word `unlimited`. */
function orUnlimited<T>(properties: Record<string, TSchema>) {
  const expected = 'a map with burst, sustained or windows, or the word unlimited'
  // The type is that of the union, so that a value of a wrong type is reported once.
  const { type: _, ...map } = Strict(properties, { minProperties: 1, expected })
  return Type.Unsafe<T | typeof UNLIMITED>({
    type: ['string', 'object'],
    expected,
    ...when({ type: 'string' }, { enum: [UNLIMITED], expected }, map),
  })
}

export const QuotaSchema = orUnlimited<Quota>(quotaProperties)
export const OverrideSchema = orUnlimited<Partial<Quota>>({
  ...overrideProperties,
  notify: Type.Optional(NotifySchema),
})
/** An override set on the admin port, which shows what it has stored: no place for a secret. */
export const SettableOverrideSchema = orUnlimited<Partial<Quota>>(overrideProperties)

/**
 * Faults of the quota at `path` that a schema cannot express: no window, or windows that do not fit together.
 */
export function quotaFaults(quota: QuotaEntry, path: Path): UnplacedProblem[] {
  const faults = windowFaults(quota, path)
  if (quota !== UNLIMITED && windowsOf(quota).length === 0) {
    faults.push({ path, message: 'A quota needs a window: burst, sustained or windows.' })
  }
  if (quota !== UNLIMITED && quota.trial !== undefined && windowsOf(quota.trial).length === 0) {
    faults.push({ path: [...path, 'trial'], message: 'A trial needs a window: burst, sustained or windows.' })
  }
  return faults
}

/** Faults of the windows of a quota or an override, which may be partial. */
export function windowFaults(quota: QuotaOverride, path: Path): UnplacedProblem[] {
  if (quota === UNLIMITED) return []
  const faults: UnplacedProblem[] = []
  const names = new Set<string>()
  for (const [i, { name, requests, per, timezone, algorithm }] of (quota.windows ?? []).entries()) {
    const at = (key: string): Path => [...path, 'windows', i, key]
    if (names.has(name)) faults.push({ path: at('name'), message: `The window "${name}" is written twice.` })
    names.add(name)
    if (typeof per === 'number' && timezone !== undefined) {
      const message = 'A rolling window has no time zone: remove it, or write "per: day", "week" or "month".'
      faults.push({ path: at('timezone'), message })
    }
    if (requests === 0 && per !== LIFETIME) {
      const message =
        'A window of 0 admits nothing: give a number from 1. Only "per: lifetime" takes 0, for what credit alone admits.'
      faults.push({ path: at('requests'), message })
    }
    if (per === LIFETIME) {
      const message = (key: string) =>
        `A lifetime window never begins anew, so it takes no ${key}: remove it.`
      if (timezone !== undefined) faults.push({ path: at('timezone'), message: message('time zone') })
      if (algorithm !== undefined) faults.push({ path: at('algorithm'), message: message('algorithm') })
    } else if (typeof per === 'string' && algorithm !== undefined) {
      const message = `A window of the calendar begins and ends with its ${per}, so it takes no algorithm: remove it, or give a length such as 24h.`
      faults.push({ path: at('algorithm'), message })
    }
  }
  const many = tooMany(quota)
  if (many !== undefined) faults.push({ path: [...path, 'windows'], message: many })
  const place = (quota.trial?.windows ?? []).findIndex(isLifetime)
  if (place >= 0) {
    const message =
      'A trial has no lifetime window, as credit is given to the quota in force: remove it, or give a length.'
    faults.push({ path: [...path, 'trial', 'windows', place, 'per'], message })
  }
  return quota.trial === undefined ? faults : [...faults, ...windowFaults(quota.trial, [...path, 'trial'])]
}
