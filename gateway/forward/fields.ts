/** The rate-limit fields of a response (draft-ietf-httpapi-ratelimit-headers-10 and the x- family). */
import type { Outcome, Reading, Rule, Verdict } from '../types.js'

export type Families = 'both' | 'ietf' | 'x' | 'none'

/** These replace the upstream's fields of the same names, so that a response never promises more than our limit. */
export const RATE_LIMIT_FIELDS: readonly string[] = [
  'RateLimit-Policy',
  'RateLimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

const EXPOSED = [...RATE_LIMIT_FIELDS, 'Retry-After'].join(', ')

const NAMES = RATE_LIMIT_FIELDS.map(name => name.toLowerCase())

/** Lower-case names of the rate-limit fields that responses carry. */
export function limitNames(families: Families): readonly string[] {
  if (families === 'both') return NAMES
  return families === 'none' ? [] : NAMES.filter(name => name.startsWith('x-') === (families === 'x'))
}

/** Tolerance for floating-point error, so that a whole second is not rounded up to the next. */
const CRUMB_SECONDS = 1e-7

/** Whole seconds a client should wait: rounded up, at least 1, so that a client that waits is admitted. */
export function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000 - CRUMB_SECONDS))
}

/** Flat name, value, … list for one verdict; empty when no limit applies. */
export function rateLimitFields(verdict: Verdict, families: Families): string[] {
  const fields: string[] = []
  const shown = shownReadings(verdict)
  if (families === 'none' || shown.length === 0) return fields
  const known = shown.every(reading => reading.left !== undefined)
  if (families !== 'x') {
    fields.push('RateLimit-Policy', policyList(verdict, shown))
    // Without a count the remaining quota is unknown, so only the constant fields are sent.
    if (known) fields.push('RateLimit', shown.map(limitItem).join(', '))
  }
  if (families !== 'ietf') {
    const current = known ? tightest(shown) : (shown[0] as Reading)
    fields.push('x-ratelimit-limit', `${current.quota}${shown.map(windowItem).join('')}`)
    if (known) {
      fields.push('x-ratelimit-remaining', String(current.left))
      fields.push('x-ratelimit-reset', String(seconds(current.resetMs)))
    }
  }
  return fields
}

/** Lets scripts of another origin read the fields (Fetch standard, CORS). */
export function exposedFields(): string[] {
  return ['Access-Control-Expose-Headers', EXPOSED]
}

/** Windows of the enforced rules, and slots that caused a refusal; never hidden readings. */
function shownReadings(verdict: Verdict): Reading[] {
  const shown: Reading[] = []
  for (const { readings } of verdict.outcomes) {
    for (const reading of readings) {
      if (reading.hidden) continue
      if (reading.windowMs !== undefined || reading.violated) shown.push(reading)
    }
  }
  return shown
}

/** The policy list last sent for a rule: its readings and its text. */
interface PolicyText {
  readonly shown: readonly Reading[]
  readonly text: string
}

const policyTexts = new WeakMap<Rule, PolicyText>()

/** The policies of a rule rarely change between responses, so the text of a single rule is cached until they do. */
function policyList(verdict: Verdict, shown: readonly Reading[]): string {
  const only = verdict.outcomes.length === 1 ? (verdict.outcomes[0] as Outcome).rule : undefined
  const last = only && policyTexts.get(only)
  if (last !== undefined && areSamePolicies(last.shown, shown)) return last.text
  const text = shown.map(policyItem).join(', ')
  if (only !== undefined) policyTexts.set(only, { shown, text })
  return text
}

function areSamePolicies(some: readonly Reading[], others: readonly Reading[]): boolean {
  if (some.length !== others.length) return false
  return some.every(({ policy, quota, windowMs }, i) => {
    const other = others[i] as Reading
    return quota === other.quota && windowMs === other.windowMs && policy === other.policy
  })
}

function policyItem({ policy, quota, windowMs }: Reading): string {
  const unit = windowMs === undefined ? 'qu="concurrent-requests"' : `w=${windowMs / 1000}`
  return `"${policy}";q=${quota};${unit}`
}

function limitItem({ policy, left, windowMs, resetMs }: Reading): string {
  const wait = windowMs === undefined ? '' : `;t=${seconds(resetMs)}`
  return `"${policy}";r=${left}${wait}`
}

function windowItem({ quota, windowMs }: Reading): string {
  return windowMs === undefined ? '' : `, ${quota};w=${windowMs / 1000}`
}

/** The window with the least left, the longer one on a tie; on refusal the violated one with the latest reset. */
function tightest(shown: readonly Reading[]): Reading {
  const violated = shown.filter(reading => reading.violated)
  if (violated.length > 0) return violated.reduce((a, b) => (b.resetMs > a.resetMs ? b : a))
  return shown.reduce((a, b) => {
    if (a.left !== b.left) return (b.left as number) < (a.left as number) ? b : a
    return (b.windowMs ?? 0) > (a.windowMs ?? 0) ? b : a
  })
}

/** Lets a page of another origin read our own refusals: echoes its Origin, never with credentials. */
export function corsFields(origin: string | undefined, cors: 'echo' | 'none'): string[] {
  if (origin === undefined || cors === 'none') return []
  return ['Access-Control-Allow-Origin', origin, 'Vary', 'Origin']
}
