/** The last hour, of one or several processes. */
import type { HistoryOf } from '../../admin/live.js'
import type { LiveHistory, LivePoint } from '../../admin/live-snapshot.js'
import type { Configuration } from '../../configured/load.js'
import { NotFound } from '../../errors.js'
import type { StepCounts } from '../../observe/live/live.js'
import { REQUEST } from '../../observe/live/requests.js'
import { OUTCOMES } from '../../observe/live/rules.js'
import { STEP_MS } from '../../observe/live/tally.js'
import { sum } from './join.js'
import { rulesOf } from './rules.js'

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
