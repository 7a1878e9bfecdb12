/** Validates what a plugin exports and returns: it may be untyped JavaScript. */
import { isTimeZone } from '../../../config/formats.js'
import * as words from '../../../config/words/words.js'
import { compiledDemand } from '../../compiled-rule.js'
import type {
  CredentialHeader,
  Demand,
  Plugin,
  Project,
  Tools,
  Window,
  WrongCredential,
} from '../../plugin.js'

type Members = Readonly<Record<string, unknown>>

const KINDS: readonly unknown[] = ['identify', 'limit', 'observe'] satisfies Plugin['kind'][]
const ALGORITHMS: readonly unknown[] = words.ALGORITHMS
const UNITS: readonly unknown[] = words.CALENDAR_UNITS
/** Plugin names become kinds of policies, and window names appear in responses. */
const NAME = /^[a-z][a-z0-9._-]{0,63}$/
/** Reasons stand in records and metrics. */
const REASON = /^[a-z][a-z0-9 -]{0,63}$/
/** A scheme, and parameters of it (RFC 9110 section 11.6.1). */
const CHALLENGE = /^[A-Za-z][A-Za-z0-9-]{0,31}(?: [ -~]{1,256})?$/
const SCHEME = /^[A-Za-z][A-Za-z0-9-]{0,31}$/
const HEADER = /^[a-z0-9-]{1,64}$/
const MOST_QUOTED = 129
const MOST_ITEMS = 16
const MOST = 1_000_000_000
/** Node's timers overflow after 24.8 days, and would fire at once. */
const LONGEST_MS = 24 * 24 * 3_600_000
const SHORTEST_TTL_MS = 1000
/** 31 days, and the two hours by which a change of the clock may lengthen a period. */
const LONGEST_WINDOW_MS = (31 * 24 + 2) * 3_600_000

/** Why a module's export is not a plugin, as the end of a sentence; undefined when it is one. */
export function shapeFault(candidate: unknown): string | undefined {
  if (!isObject(candidate)) return 'it must be a map that definePlugin takes'
  const { name, kind, schema, create } = candidate
  if (typeof name !== 'string' || !NAME.test(name)) {
    return 'its "name" must begin with a lowercase letter and go on with up to 63 lowercase letters, digits, ".", "_" or "-"'
  }
  if (!KINDS.includes(kind)) return `the "kind" of "${name}" must be identify, limit or observe`
  if (!isObject(schema)) return `the "schema" of "${name}" must be a JSON Schema, such as Type.Object({})`
  if (typeof create !== 'function') return `the "create" of "${name}" must be a function`
  return undefined
}

/** A plugin returned a value that cannot be used. */
export class WrongAnswer extends TypeError {}

/** Returns the object if it has these functions; otherwise throws a TypeError that names the first missing one. */
export function withFunctions<T>(value: unknown, call: string, ...names: string[]): T {
  const missing = isObject(value) ? names.find(name => typeof value[name] !== 'function') : names[0]
  if (missing === undefined) return value as T
  if (isThenable(value)) ignore(value)
  throw new TypeError(`${call} must return at once an object with the function ${missing}()`)
}

/** True for anything that `await` would wait for. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof value.then === 'function'
}

/** Ignores the promise's outcome: an unhandled rejection would end the process. */
export function ignore(value: PromiseLike<unknown>): void {
  Promise.resolve(value).catch(() => {})
}

/** A copy of what an identifier answered; throws a TypeError if it is invalid. */
export function answerFrom(
  value: unknown,
  words: Pick<Tools, 'plans' | 'environments'>,
): Project | WrongCredential | undefined {
  if (value === undefined || value === null) return undefined
  const { wrongCredential, reason, mayBeRight } = isObject(value) ? value : {}
  if (wrongCredential === undefined) return projectFrom(value, words)
  if (typeof wrongCredential !== 'string')
    throw new TypeError('wrongCredential must be the text of the credential')
  const said = typeof reason === 'string' && REASON.test(reason) ? reason : undefined
  return { wrongCredential, reason: said, mayBeRight: mayBeRight === true }
}

/** A copy of the project. Only declared words may become metric labels. */
function projectFrom(
  value: unknown,
  { plans, environments }: Pick<Tools, 'plans' | 'environments'>,
): Project {
  const { id, plan, environment } = isObject(value) ? value : {}
  const isProject =
    typeof id === 'string' &&
    words.isProjectId(id) &&
    typeof plan === 'string' &&
    typeof environment === 'string'
  if (!isProject) throw new TypeError('identify() must return a project with id, plan and environment')
  if (!plans.includes(plan) || !environments.includes(environment)) {
    const column = words.columnName(plan, environment).slice(0, MOST_QUOTED)
    throw new TypeError(
      `identify() returned ${column}, but projects.yaml declares no such plan or environment`,
    )
  }
  const { scopes } = value as Members
  const hasScopes = Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')
  if (scopes !== undefined && !hasScopes)
    throw new TypeError('the scopes of a project must be a list of words')
  return { id, plan, environment, ...(hasScopes && { scopes: [...scopes] }) }
}

/** What `challenge` of an identifier returned: it becomes a field of responses. */
export function challengeFrom(value: unknown): string {
  if (typeof value === 'string' && CHALLENGE.test(value)) return value
  throw new TypeError('challenge() must return an authentication scheme, such as Bearer')
}

/** What `strips` of an identifier returned. */
export function headerFrom(value: unknown): CredentialHeader | undefined {
  if (value === undefined) return undefined
  const { header, scheme } = isObject(value) ? value : { header: value }
  const isHeader = typeof header === 'string' && HEADER.test(header)
  if (isHeader && (scheme === undefined || (typeof scheme === 'string' && SCHEME.test(scheme)))) {
    return { header, scheme }
  }
  throw new TypeError(
    'strips() must return the name of a header in lower case, or { header, scheme }, or undefined',
  )
}

/** Demands that have been checked: most are one object for many requests. */
const known = new WeakMap<object, Demand>()

/**
 * Returns the same demand for the same object, so that requests that share one can be recognized; throws a TypeError if
 * it is invalid.
 */
export function demandFrom(value: unknown): Demand {
  if (isObject(value)) {
    const before = known.get(value)
    if (before !== undefined) return before
    if (isWindowsDemand(value) || isSlotsDemand(value) || isMeterDemand(value)) {
      const demand = checkedDemand(value as unknown as Demand)
      known.set(value, demand)
      return demand
    }
  }
  throw new WrongAnswer('demand() must return windows, slots or a meter, with whole numbers above 0')
}

/** What `afterAnswer` returns is checked with each response. */
function checkedDemand(demand: Demand): Demand {
  if (demand.kind === 'windows') return compiledDemand(demand)
  if (demand.kind !== 'meter' || demand.afterAnswer === undefined) return demand
  return { ...demand, afterAnswer: answer => unitsFrom(demand.afterAnswer?.(answer)) }
}

function unitsFrom(value: unknown): number {
  if (typeof value === 'number' && value >= 0) return value
  if (isThenable(value)) ignore(value)
  throw new WrongAnswer('afterAnswer() must return at once a number that is not negative')
}

function isWindowsDemand({ kind, windows, lease, cost = 1 }: Members): boolean {
  if (kind !== 'windows' || typeof lease !== 'boolean' || !Array.isArray(windows)) return false
  const names = new Set(windows.map(window => (isObject(window) ? window.name : undefined)))
  return (
    isFilled(windows) &&
    windows.every(isWindow) &&
    names.size === windows.length &&
    windows.every(({ quota }) => isWhole(cost, quota))
  )
}

function isWindow(window: unknown): window is Window {
  if (!isObject(window)) return false
  const { name, quota, ms, algorithm, calendar } = window
  return (
    typeof name === 'string' &&
    NAME.test(name) &&
    isWhole(quota, MOST) &&
    isWhole(ms, LONGEST_WINDOW_MS) &&
    ALGORITHMS.includes(algorithm) &&
    (calendar === undefined || isCalendar(calendar))
  )
}

function isCalendar(calendar: unknown): boolean {
  if (!isObject(calendar)) return false
  const { unit, timezone } = calendar
  return UNITS.includes(unit) && typeof timezone === 'string' && isTimeZone(timezone)
}

function isSlotsDemand({ kind, max, ttlMs, maxHoldMs, count }: Members): boolean {
  return (
    kind === 'slots' &&
    isWhole(max, MOST) &&
    isWhole(ttlMs, LONGEST_MS) &&
    (ttlMs as number) >= SHORTEST_TTL_MS &&
    (maxHoldMs === undefined || isWhole(maxHoldMs, LONGEST_MS)) &&
    (count === undefined || count === 'handshake' || count === 'lifetime')
  )
}

function isMeterDemand({ kind, quota, ms, blockMs, cost = 1, afterAnswer }: Members): boolean {
  return (
    kind === 'meter' &&
    isWhole(quota, MOST) &&
    isWhole(ms, LONGEST_MS) &&
    (blockMs === 0 || isWhole(blockMs, LONGEST_MS)) &&
    isWhole(cost, quota as number) &&
    (afterAnswer === undefined || typeof afterAnswer === 'function')
  )
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}

function isFilled(list: readonly unknown[]): boolean {
  return list.length > 0 && list.length <= MOST_ITEMS
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most
}

const LONGEST_MESSAGE = 300

/** What a plugin threw, as displayable text: the first line, of at most 300 characters. Never throws. */
export function messageOf(thrown: unknown): string {
  const [line = ''] = textOf(thrown).split('\n', 1)
  const clean = line.replace(/\p{Cc}/gu, '?')
  return clean.length > LONGEST_MESSAGE ? `${clean.slice(0, LONGEST_MESSAGE)}…` : clean
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'something that is not text'
  }
}
