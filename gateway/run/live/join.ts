/** Merges the live data and the last hour of several processes by adding up the numbers. */
import type { HistoryOf } from '../../admin/live.js'
import type {
  LiveClosest,
  LiveHistory,
  LiveOutcomes,
  LivePoint,
  LiveProject,
  LiveRates,
  LiveSlots,
} from '../../admin/live-snapshot.js'
import type { Configuration } from '../../configured/load.js'
import { NotFound } from '../../errors.js'
import type { StepCounts } from '../../observe/live/live.js'
import { allRequests, OUTCOMES, REQUEST } from '../../observe/live/outcomes.js'
import { STEP_MS } from '../../observe/live/tally.js'
import type { ProcessPart } from './part.js'
import { rulesOf } from './rules.js'

/** Largest number of projects in each list, and of counters close to a limit. */
const MOST = 50

/** Rates and the last hour by rule; the hour is null when one of the processes has none. */
export type CountedRules = ReadonlyMap<string, readonly [readonly number[], readonly number[] | null]>

/** The counts of a rule without any outcome. */
const NOTHING = [[], []] as const

export function joinRules(parts: readonly ProcessPart[]): CountedRules {
  const joined = new Map<string, readonly [readonly number[], readonly number[] | null]>()
  for (const [id, rates, hour] of parts.flatMap(({ rules }) => rules)) {
    const [otherRates, otherHour] = joined.get(id) ?? NOTHING
    joined.set(id, [sum(rates, otherRates), hour && otherHour && sum(hour, otherHour)])
  }
  return joined
}

/** The counts of a rule, as they are reported. */
export function countsOf(
  rules: CountedRules,
  id: string,
): { rates: LiveOutcomes; last_hour: LiveOutcomes | null } {
  const [rates, hour] = rules.get(id) ?? NOTHING
  return { rates: outcomesOf(rates), last_hour: hour && outcomesOf(hour) }
}

export function joinRates(parts: readonly ProcessPart[]): LiveRates {
  const total = parts.map(({ total }) => total).reduce(sum, [])
  return {
    ...askedOf(total),
    errors_of_ours: rounded(total[REQUEST.ourError]),
    errors_of_upstreams: rounded(total[REQUEST.upstreamError]),
  }
}

export function joinProjects(parts: readonly ProcessPart[]): LiveProject[] {
  const joined = new Map<string, ProcessPart['projects'][number]>()
  for (const project of parts.flatMap(({ projects }) => projects)) {
    const other = joined.get(project.id)
    const { rates = [], hour = [] } = other ?? {}
    joined.set(project.id, { ...project, rates: sum(project.rates, rates), hour: sum(project.hour, hour) })
  }
  const all = [...joined.values()].map(({ id, plan, environment, rates, hour }) => ({
    ...{ id, plan, environment },
    rates: askedOf(rates),
    last_hour: askedOf(hour),
  }))
  return foremost(all)
}

/** The busiest and the most refused projects, by the last hour plus the current rates extrapolated to an hour. */
function foremost(all: readonly LiveProject[]): LiveProject[] {
  const size = ({ rates, last_hour }: LiveProject, of: (asked: LiveProject['rates']) => number) =>
    of(last_hour) + of(rates) * 3600
  const by = (of: (asked: LiveProject['rates']) => number) =>
    [...all].sort((one, other) => size(other, of) - size(one, of))
  const refusals = (asked: LiveProject['rates']) => asked.refused + asked.would_refuse
  const busiest = by(({ requests }) => requests)
  const refused = by(refusals).filter(({ last_hour }) => refusals(last_hour) > 0)
  const chosen = new Set([...busiest.slice(0, MOST), ...refused.slice(0, MOST)])
  return busiest.filter(one => chosen.has(one))
}

/** For a counter that several processes have seen, the latest state counts. */
export function joinClosest(parts: readonly ProcessPart[]): LiveClosest[] {
  const latest = new Map<string, ProcessPart['closest'][number]>()
  for (const counter of parts.flatMap(({ closest }) => closest)) {
    const { key, rule, at } = counter
    const name = `${key} ${rule}`
    if ((latest.get(name)?.at ?? 0) <= at) latest.set(name, counter)
  }
  const share = ({ used, quota }: LiveClosest) => Math.min(1, used / quota)
  return [...latest.values()]
    .map(({ at, ...counter }) => ({ ...counter, at: new Date(at).toISOString() }))
    .sort((one, other) => share(other) - share(one) || other.at.localeCompare(one.at))
    .slice(0, MOST)
}

export function joinSlots(parts: readonly ProcessPart[]): LiveSlots[] {
  const joined = new Map<string, LiveSlots>()
  for (const { rule, held, oldest_ms } of parts.flatMap(({ slots }) => slots)) {
    const other = joined.get(rule)
    const oldest = Math.max(oldest_ms, other?.oldest_ms ?? 0)
    joined.set(rule, { rule, held: held + (other?.held ?? 0), oldest_ms: oldest })
  }
  return [...joined.values()].sort((one, other) => other.held - one.held)
}

/** By rule: how many requests wait for it. */
export function joinWaiting(parts: readonly ProcessPart[]): ReadonlyMap<string, number> {
  const joined = new Map<string, number>()
  for (const { rule, waiting } of parts.flatMap(part => part.waiting)) {
    joined.set(rule, (joined.get(rule) ?? 0) + waiting)
  }
  return joined
}

function outcomesOf(counts: readonly number[]): LiveOutcomes {
  const [allowed, near, limited, would_limit, error] = OUTCOMES.map((_, i) => rounded(counts[i]))
  return { allowed, near, limited, would_limit, error } as LiveOutcomes
}

function askedOf(counts: readonly number[]): LiveProject['rates'] {
  return {
    requests: rounded(allRequests(kind => counts[kind] ?? 0)),
    refused: rounded(counts[REQUEST.refused]),
    would_refuse: rounded(counts[REQUEST.wouldRefuse]),
  }
}

export function sum(one: readonly number[], other: readonly number[]): number[] {
  const longer = one.length > other.length ? one : other
  return longer.map((_, i) => (one[i] ?? 0) + (other[i] ?? 0))
}

function rounded(value = 0): number {
  return Math.round(value * 100) / 100
}

/** @throws {NotFound} for a rule or project that is neither in the files nor has been counted */
export function checkKnown(
  { rule, project }: HistoryOf,
  all: readonly (StepCounts | undefined)[],
  loaded: Configuration,
): void {
  if (all.some(one => one !== undefined)) return
  if (rule !== undefined && !rulesOf(loaded).some(({ id }) => id === rule))
    throw new NotFound(`There is no bucket or rule "${rule}" here.`)
  if (project !== undefined && !loaded.config.projects.some(({ id }) => id === project))
    throw new NotFound(`No requests of "${project}" are known from the last hour.`)
}

/** Adds up the processes step by step; one that started later has no data for the first steps. */
export function joinHistory(all: readonly (StepCounts | undefined)[], of: HistoryOf): LiveHistory {
  const known = all.filter(one => one !== undefined)
  if (known.length === 0) return { step_ms: STEP_MS, from: new Date().toISOString(), points: [] }
  const first = Math.min(...known.map(({ firstStep }) => firstStep))
  const last = Math.max(...known.map(({ firstStep, points }) => firstStep + points.length))
  const point = of.rule === undefined ? requestsPoint : rulePoint
  const points = Array.from({ length: last - first }, (_, i) =>
    point(known.map(({ firstStep, points }) => points[first + i - firstStep] ?? []).reduce(sum, [])),
  )
  return { step_ms: STEP_MS, from: new Date(first * STEP_MS).toISOString(), points }
}

function rulePoint(counts: readonly number[]): LivePoint {
  const count = (outcome: (typeof OUTCOMES)[number]) => counts[OUTCOMES.indexOf(outcome)] ?? 0
  return {
    allowed: count('allowed') + count('near'),
    limited: count('limited'),
    would_limit: count('would_limit'),
    error: count('error'),
  }
}

function requestsPoint(counts: readonly number[]): LivePoint {
  const count = (kind: keyof typeof REQUEST) => counts[REQUEST[kind]] ?? 0
  return {
    allowed: count('allowed'),
    limited: count('refused'),
    would_limit: count('wouldRefuse'),
    error: count('ourError') + count('upstreamError'),
  }
}
