/** The rate-limit fields of a response (draft-ietf-httpapi-ratelimit-headers-10 and the x- family). */

import type { PolicyTexts } from '../compiled-rule.js'
import type { Outcome, Reading, Verdict } from '../verdict.js'

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
  const shown = shownReadings(verdict)
  const [first] = shown
  if (families === 'none' || first === undefined) return []
  const texts = textsOf(verdict, shown)
  const limit = limitList(shown, texts)
  const fields: string[] = []
  if (families !== 'x') {
    fields.push('RateLimit-Policy', texts.policies)
    // Without a count the remaining quota is unknown, so only the constant fields are sent.
    if (limit !== undefined) fields.push('RateLimit', limit)
  }
  if (families !== 'ietf') {
    const { quota, left, resetMs, lifetime } = limit === undefined ? first : tightest(shown)
    fields.push('x-ratelimit-limit', quota + texts.windows)
    if (limit !== undefined) {
      fields.push('x-ratelimit-remaining', String(left))
      if (!lifetime) fields.push('x-ratelimit-reset', String(seconds(resetMs)))
    }
  }
  return fields
}

/** Lets scripts of another origin read the fields (Fetch standard, CORS). */
export function exposedFields(): string[] {
  return ['Access-Control-Expose-Headers', EXPOSED]
}

/** True for the slots of an in-flight rule. */
function isSlots({ windowMs, lifetime }: Reading): boolean {
  return windowMs === undefined && !lifetime
}

/** Windows of the enforced rules, and slots that caused a refusal; never hidden readings, nor of rules that hide theirs. */
function shownReadings(verdict: Verdict): Reading[] {
  const shown: Reading[] = []
  for (const { rule, readings } of verdict.outcomes) {
    if (rule.hidesNumbers) continue
    for (const reading of readings) {
      if (reading.hidden) continue
      if (!isSlots(reading) || reading.violated) shown.push(reading)
    }
  }
  return shown
}

/** The policies of a rule rarely change between responses, so the texts of a single rule are cached until they do. */
function textsOf(verdict: Verdict, shown: readonly Reading[]): PolicyTexts {
  const made = verdict.outcomes.length === 1 ? (verdict.outcomes[0] as Outcome).rule.made : undefined
  const last = made?.policyTexts
  if (last !== undefined && areSamePolicies(last.shown, shown)) return last
  const texts = {
    shown,
    policies: shown.map(policyItem).join(', '),
    windows: shown.map(windowItem).join(''),
    beforeLeft: shown.map(({ policy }, i) => `${i === 0 ? '' : ', '}"${policy}";r=`),
  }
  if (made !== undefined) made.policyTexts = texts
  return texts
}

function areSamePolicies(some: readonly Reading[], others: readonly Reading[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i += 1) {
    const [one, other] = [some[i] as Reading, others[i] as Reading]
    if (one.quota !== other.quota || one.windowMs !== other.windowMs || one.policy !== other.policy)
      return false
  }
  return true
}

/** A lifetime window has no `w`: it is of no length. */
function policyItem(reading: Reading): string {
  const { policy, quota, windowMs } = reading
  const item = `"${policy}";q=${quota}`
  if (windowMs !== undefined) return `${item};w=${windowMs / 1000}`
  return isSlots(reading) ? `${item};qu="concurrent-requests"` : item
}

function windowItem({ quota, windowMs }: Reading): string {
  return windowMs === undefined ? '' : `, ${quota};w=${windowMs / 1000}`
}

/** The value of RateLimit; undefined when nothing was counted. */
function limitList(shown: readonly Reading[], { beforeLeft }: PolicyTexts): string | undefined {
  let list = ''
  for (let i = 0; i < shown.length; i += 1) {
    const { left, windowMs, resetMs } = shown[i] as Reading
    if (left === undefined) return undefined
    list += (beforeLeft[i] as string) + left
    if (windowMs !== undefined) list += `;t=${seconds(resetMs)}`
  }
  return list
}

/** The window with the least left, the longer one on a tie; on refusal the violated one with the latest reset. */
function tightest(shown: readonly Reading[]): Reading {
  let found = shown[0] as Reading
  for (const reading of shown) if (isTighter(reading, found)) found = reading
  return found
}

function isTighter(one: Reading, other: Reading): boolean {
  if (one.violated !== other.violated) return one.violated
  if (one.violated) return waitOf(one) > waitOf(other)
  if (one.left !== other.left) return (one.left as number) < (other.left as number)
  return (one.windowMs ?? 0) > (other.windowMs ?? 0)
}

/** No time gives a lifetime window more. */
function waitOf({ resetMs, lifetime }: Reading): number {
  return lifetime ? Number.POSITIVE_INFINITY : resetMs
}

/** Lets a page of another origin read our own refusals: echoes its Origin, never with credentials. */
export function corsFields(origin: string | undefined, cors: 'echo' | 'none'): string[] {
  if (origin === undefined || cors === 'none') return []
  return ['Access-Control-Allow-Origin', origin, 'Vary', 'Origin']
}
