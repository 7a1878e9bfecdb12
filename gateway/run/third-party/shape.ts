/** What a plugin hands over, looked at before it is trusted: it may be JavaScript that no compiler has seen. */
import * as words from '../../../config/words.js'
import type { Demand, Plugin, Project, Reading, Ruling, Window } from '../../plugin.js'
import type { Environment, Plan, StoreName } from '../../types.js'

type Fields = Readonly<Record<string, unknown>>

const KINDS: readonly unknown[] = ['identify', 'limit', 'observe'] satisfies Plugin['kind'][]
const PLANS: readonly unknown[] = words.PLANS
const ENVIRONMENTS: readonly unknown[] = words.ENVIRONMENTS
const ALGORITHMS: readonly unknown[] = words.ALGORITHMS
const STORES: readonly unknown[] = ['redis', 'lease', 'memory', 'local', 'none']
/** Names of plugins are kinds of policies, names of windows and readings stand in answers. */
const NAME = /^[a-z][a-z0-9._-]{0,63}$/
const READING_NAME = /^[a-z][a-z0-9._-]{0,127}$/
const PROJECT_ID = /^[A-Za-z0-9._:-]{1,128}$/
const MOST_ITEMS = 16
const MOST = 1_000_000_000
/** Node's timers overflow after 24.8 days, and would fire at once. */
const LONGEST_MS = 24 * 24 * 3_600_000
const SHORTEST_TTL_MS = 1000

/** Why a module's export is no plugin, as the end of a sentence; undefined when it is one. */
export function shapeFault(candidate: unknown): string | undefined {
  if (!isObject(candidate)) return 'it must be a map that definePlugin takes'
  const { name, kind, schema, create } = candidate
  if (typeof name !== 'string' || !NAME.test(name)) {
    return 'its "name" must be a small letter, then small letters, digits, ".", "_" or "-"'
  }
  if (!KINDS.includes(kind)) return `the "kind" of "${name}" must be identify, limit or observe`
  if (!isObject(schema)) return `the "schema" of "${name}" must be a JSON Schema, such as Type.Object({})`
  if (typeof create !== 'function') return `the "create" of "${name}" must be a function`
  return undefined
}

/** An object with these functions, or a TypeError that names the first that is missing. */
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

/** Nobody will look at it; unhandled, its failure would end the process. */
export function ignore(value: PromiseLike<unknown>): void {
  Promise.resolve(value).catch(() => {})
}

/** A copy of the project, or a TypeError. */
export function projectFrom(value: unknown): Project | undefined {
  if (value === undefined || value === null) return undefined
  const { id, plan, environment } = isObject(value) ? value : {}
  const isProject =
    typeof id === 'string' &&
    PROJECT_ID.test(id) &&
    PLANS.includes(plan) &&
    ENVIRONMENTS.includes(environment)
  if (!isProject) throw new TypeError('identify() must return a project with id, plan and environment')
  return { id, plan: plan as Plan, environment: environment as Environment }
}

/** The demand itself, so that requests which share it are still seen to do so; or a TypeError. */
export function demandFrom(value: unknown): Demand {
  if (isObject(value) && (isWindowsDemand(value) || isSlotsDemand(value))) return value as unknown as Demand
  throw new TypeError('demand() must return windows or slots with whole numbers above 0')
}

function isWindowsDemand({ kind, windows, lease }: Fields): boolean {
  if (kind !== 'windows' || typeof lease !== 'boolean' || !Array.isArray(windows)) return false
  const names = new Set(windows.map(window => (isObject(window) ? window.name : undefined)))
  return isFilled(windows) && windows.every(isWindow) && names.size === windows.length
}

function isWindow(window: unknown): window is Window {
  if (!isObject(window)) return false
  const { name, quota, ms, algorithm } = window
  return (
    typeof name === 'string' &&
    NAME.test(name) &&
    isWhole(quota, MOST) &&
    isWhole(ms, LONGEST_MS) &&
    ALGORITHMS.includes(algorithm)
  )
}

function isSlotsDemand({ kind, max, ttlMs, maxHoldMs, count }: Fields): boolean {
  return (
    kind === 'slots' &&
    isWhole(max, MOST) &&
    isWhole(ttlMs, LONGEST_MS) &&
    (ttlMs as number) >= SHORTEST_TTL_MS &&
    (maxHoldMs === undefined || isWhole(maxHoldMs, LONGEST_MS)) &&
    (count === undefined || count === 'handshake' || count === 'lifetime')
  )
}

/** A copy of the ruling, but for its functions, which are called on the plugin's own; or a TypeError. */
export function rulingFrom(value: unknown): Ruling | 'unavailable' {
  if (value === 'unavailable') return value
  const { granted, store, readings, giveBack, release } = isObject(value) ? value : {}
  const copies = Array.isArray(readings) ? readings.slice(0, MOST_ITEMS + 1).map(readingFrom) : []
  const isRuling =
    typeof granted === 'boolean' &&
    STORES.includes(store) &&
    Array.isArray(readings) &&
    copies.length <= MOST_ITEMS &&
    isFunctionOrAbsent(giveBack) &&
    isFunctionOrAbsent(release)
  if (!isRuling) throw new TypeError(NO_RULING)
  return {
    granted,
    store: store as StoreName,
    readings: copies,
    ...(giveBack !== undefined && { giveBack: () => giveBack.call(value) }),
    ...(release !== undefined && { release: () => release.call(value) }),
  }
}

const NO_RULING = 'a ruling must have granted, store and readings, without negative numbers'

function readingFrom(reading: unknown): Reading {
  if (!isObject(reading)) throw new TypeError(NO_RULING)
  const { policy, quota, windowMs, used, left, resetMs, violated, hidden } = reading
  const isReading =
    typeof policy === 'string' &&
    READING_NAME.test(policy) &&
    isAmount(quota) &&
    isAmountOrAbsent(windowMs) &&
    isAmountOrAbsent(used) &&
    isAmountOrAbsent(left) &&
    isAmount(resetMs) &&
    typeof violated === 'boolean' &&
    (hidden === undefined || typeof hidden === 'boolean')
  if (!isReading) throw new TypeError(NO_RULING)
  return { policy, quota, windowMs, used, left, resetMs, violated, hidden }
}

/** What a plugin asks the counter; a TypeError when that is no question. */
export function assertCountable(key: unknown, limit: unknown, cost: unknown = 1): void {
  const { quota, windowMs, blockMs } = isObject(limit) ? limit : {}
  const isCountable =
    typeof key === 'string' &&
    isWhole(quota, MOST) &&
    isWhole(windowMs, LONGEST_MS) &&
    (windowMs as number) % 1000 === 0 &&
    (blockMs === 0 || isWhole(blockMs, LONGEST_MS)) &&
    isWhole(cost, MOST)
  if (isCountable) return
  throw new TypeError(
    'the counter takes a key, a limit of whole numbers (windowMs in whole seconds) and a whole cost above 0',
  )
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

function isFilled(list: readonly unknown[]): boolean {
  return list.length > 0 && list.length <= MOST_ITEMS
}

function isFunctionOrAbsent(value: unknown): value is (() => void) | undefined {
  return value === undefined || typeof value === 'function'
}

/** NaN and Infinity are none. */
function isAmount(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0
}

function isAmountOrAbsent(value: unknown): value is number | undefined {
  return value === undefined || isAmount(value)
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most
}
