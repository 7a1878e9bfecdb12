/** Reads decision records from a gateway's log, and ignores other lines. */
import type { Beside, Counter, DecisionRecord } from '../../gateway/observe/record-types.js'
import type { TimedEntry, Unread } from './read.js'

/** Fields that later versions of the record added; absent in older logs. */
type Added =
  | 'upstream'
  | 'client_request_id'
  | 'traceparent'
  | 'client'
  | 'host'
  | 'ja3'
  | 'verified'
  | 'credential'
  | 'identifier'
  | 'upgrade'
  | 'preflight'
  | 'parts'
  | 'beside'
  | 'messages'
  | 'duration_ms'

export type LoggedDecision = Omit<DecisionRecord, Added | 'v'> &
  Partial<Pick<DecisionRecord, Added>> &
  TimedEntry

/** How many decisions the log left out, by rule, according to its own lines. */
export type Dropped = Map<string, number>

const DECISIONS = ['allow', 'deny', 'would_deny', 'error_open', 'error_closed']

/** Only lines with a `decision` are records; `dropped` collects what the gateway reports to have left out. */
export function decisionReader(dropped: Dropped): (line: string) => LoggedDecision | Unread | undefined {
  return line => {
    // A log collector may put text of its own before the record.
    const start = line.indexOf('{')
    if (start < 0) return undefined
    const value = parse(start === 0 ? line : line.slice(start))
    if (value === undefined) return start === 0 ? broken('it is not complete JSON') : undefined
    if (typeof value.dropped === 'number' && typeof value.rule === 'string') {
      dropped.set(value.rule, (dropped.get(value.rule) ?? 0) + value.dropped)
      return undefined
    }
    if (value.decision === undefined) return undefined
    if (value.v !== 1)
      return { trouble: 'version', reason: `its version is ${JSON.stringify(value.v)}, not 1` }
    const fault = faultOf(value)
    if (fault !== undefined) return broken(fault)
    return Object.assign(value as object as LoggedDecision, { at: Date.parse(value.ts as string) })
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function broken(reason: string): Unread {
  return { trouble: 'broken', reason }
}

type Check = (value: unknown) => boolean
const text: Check = value => typeof value === 'string'
const textOrNull: Check = value => value === null || typeof value === 'string'
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)
const counters: Check = value => Array.isArray(value) && value.every(isCounter)

const FIELDS: Readonly<Record<string, Check>> = {
  ts: value => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  id: text,
  decision: value => DECISIONS.includes(value as string),
  mode: value => value === 'enforce' || value === 'report-only',
  rule: textOrNull,
  kind: textOrNull,
  rev: text,
  src: textOrNull,
  project: textOrNull,
  plan: textOrNull,
  environment: textOrNull,
  method: text,
  route: textOrNull,
  path: text,
  key: textOrNull,
  ip: text,
  ja4: textOrNull,
  auth: text,
  counters,
  enforce_for: optional(isPercent),
  mode_src: optional(text),
  sent_status: optional(value => typeof value === 'number'),
  sample: value => typeof value === 'number' && value > 0 && value <= 1,
  upstream: optional(text),
  client_request_id: optional(textOrNull),
  traceparent: optional(textOrNull),
  client: optional(text),
  host: optional(text),
  ja3: optional(textOrNull),
  verified: optional(value => typeof value === 'boolean'),
  credential: optional(textOrNull),
  credential_fault: optional(text),
  identifier: optional(textOrNull),
  upgrade: optional(value => typeof value === 'boolean'),
  preflight: optional(value => typeof value === 'boolean'),
  parts: optional(value => typeof value === 'object' && value !== null && Object.values(value).every(text)),
  beside: optional(value => Array.isArray(value) && value.every(isBeside)),
  messages: optional(Array.isArray),
  duration_ms: optional(value => typeof value === 'number' && value >= 0),
}
const CHECKS = Object.entries(FIELDS)

function faultOf(value: Readonly<Record<string, unknown>>): string | undefined {
  for (const [name, check] of CHECKS) {
    if (!check(value[name])) return value[name] === undefined ? `"${name}" is missing` : `"${name}" is wrong`
  }
  return undefined
}

function isCounter(value: unknown): value is Counter {
  const { policy, q, used, w_ms, window } = (value ?? {}) as Partial<Counter>
  return (
    typeof policy === 'string' &&
    typeof q === 'number' &&
    (used === null || typeof used === 'number') &&
    (w_ms === undefined || w_ms === null || (typeof w_ms === 'number' && w_ms > 0)) &&
    (window === undefined || (typeof window === 'string' && policy.endsWith(`.${window}`)))
  )
}

function isPercent(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value < 100
}

function isBeside(value: unknown): value is Beside {
  const { rule, kind, result, key, enforce_for, mode_src, counters: list } = (value ?? {}) as Partial<Beside>
  const isShare = enforce_for === undefined || isPercent(enforce_for)
  return [rule, kind, result, key].every(text) && counters(list) && isShare && optional(text)(mode_src)
}

/** True when a limit decided that the admin port had set for the project: such a source has no line. */
export function wasNegotiated({ src }: Pick<LoggedDecision, 'src'>): boolean {
  return src != null && /^\/projects\/[^/]+\/overrides\/[^/:]+$/.test(src)
}
