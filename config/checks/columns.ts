/**
 * Columns of the tables of limits, each a plan in an environment: what they are called, and that every one is in exactly
 * one row of what is enforced. Pure.
 */
import { listed, type Path, placeText } from '../problem.js'
import type { FileFault, ProjectLimitsPolicy, Readable } from '../types.js'
import { columnName, columnsOf, type PlanWords } from '../words/words.js'

interface Row {
  readonly file: string
  readonly index: number
  readonly columns: ReadonlySet<string>
  readonly quotas: Readonly<Record<string, unknown>>
}

/** All faults of the rows of project limits. */
export function checkColumns(
  read: Readable,
  limits: readonly ProjectLimitsPolicy[],
  words: PlanWords,
): FileFault[] {
  const files = limits.map(({ file, document }) =>
    document.limits.map((row, index): Row => {
      return { file, index, columns: columnsOf(row.for, words), quotas: row.quotas }
    }),
  )
  return [
    ...files.flatMap(rows => checkClaims(read, rows, words)),
    ...checkDoubleQuotas(read, files.flat(), words),
    ...(read.bucketsKnown ? checkCoverage(limits, files, words) : []),
  ]
}

/** Two rows of one file may not claim the same column. */
function checkClaims(read: Readable, rows: readonly Row[], words: PlanWords): FileFault[] {
  const claims = new Map<string, Row>()
  const faults: FileFault[] = []
  for (const row of rows) {
    const twice = new Map<Row, Set<string>>()
    for (const column of row.columns) {
      const first = claims.get(column)
      if (first === undefined) claims.set(column, row)
      else twice.set(first, (twice.get(first) ?? new Set()).add(column))
    }
    const lineOf = ({ file, index }: Row) => read.locate(file, ['limits', index, 'for']).line
    for (const [first, columns] of twice) {
      const help = columns.size === 1 ? 'Remove it from one of them.' : 'Leave them in one of the two.'
      const message = `Two rows claim ${describeColumns(columns, words)}: line ${lineOf(first)} and line ${lineOf(row)}. ${help}`
      faults.push({ file: row.file, path: ['limits', row.index, 'for'], message })
    }
  }
  return faults
}

/**
 * Two files may each add buckets to one plan and environment, but not two quotas to one bucket, whatever their modes:
 * logs and metrics go by the name, so a quota that is tried beside another needs its own bucket.
 */
function checkDoubleQuotas(read: Readable, rows: readonly Row[], words: PlanWords): FileFault[] {
  // One row per file; further rows of a file are reported as double claims.
  const owners = new Map<string, Row[]>()
  const faults: FileFault[] = []
  for (const row of rows) {
    const met = new Set<Row>()
    const reported = new Set<string>()
    for (const column of row.columns) {
      const present = owners.get(column) ?? []
      for (const owner of present) {
        if (owner.file === row.file || met.has(owner)) continue
        met.add(owner)
        for (const bucket of shared(owner, row)) {
          if (reported.has(bucket)) continue
          reported.add(bucket)
          const path = (one: Row): Path => ['limits', one.index, 'quotas', bucket]
          const where = placeText(read.locate(owner.file, path(owner)))
          const message = `Bucket "${bucket}" already has a quota for ${describeColumns(new Set([column]), words)} at ${where}.`
          faults.push({ file: row.file, path: path(row), atKey: true, message })
        }
      }
      if (!present.some(({ file }) => file === row.file)) owners.set(column, [...present, row])
    }
  }
  return faults
}

/** Buckets that both give a quota. */
function shared(one: Row, other: Row): string[] {
  return Object.keys(other.quotas).filter(bucket => Object.hasOwn(one.quotas, bucket))
}

/** Enforced limits must cover every column. Report-only ones may be tried on a few and need not. */
function checkCoverage(
  limits: readonly ProjectLimitsPolicy[],
  files: readonly (readonly Row[])[],
  words: PlanWords,
): FileFault[] {
  const enforced = files.filter((_, i) => limits[i]?.document.mode === 'enforce')
  const file = enforced[0]?.[0]?.file
  if (file === undefined) return []
  const missing = columnsOf([{}], words)
  for (const { columns } of enforced.flat()) for (const column of columns) missing.delete(column)
  if (missing.size === 0) return []
  const message = `No row covers ${describeColumns(missing, words)}. Add ${missing.size === 1 ? 'it' : 'them'} to a row's "for".`
  return [{ file, path: ['limits'], message }]
}

/** Longer lists of plans are shortened to their number and the first few names. */
const MOST_NAMED = 6
const FIRST_NAMED = 3
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

/**
 * Describes columns in one line, however many there are:
 * `all plans in development and staging; developer in production`,
 * `all environments of five plans (a, b, c, d and e)`.
 */
export function describeColumns(columns: ReadonlySet<string>, { plans, environments }: PlanWords): string {
  const byPlans = new Map<string, { readonly plans: readonly string[]; readonly environments: string[] }>()
  for (const environment of environments) {
    const here = plans.filter(plan => columns.has(columnName(plan, environment)))
    if (here.length === 0) continue
    const text = here.join('/')
    const group = byPlans.get(text) ?? { plans: here, environments: [] }
    group.environments.push(environment)
    byPlans.set(text, group)
  }
  return [...byPlans.values()]
    .map(group => {
      if (group.plans.length === plans.length) return `all plans in ${listed(group.environments, 'and')}`
      return group.environments.length === environments.length && environments.length > 1
        ? `all environments of ${countedPlans(group.plans)}`
        : `${namedPlans(group.plans)} in ${listed(group.environments, 'and')}`
    })
    .join('; ')
}

function namedPlans(plans: readonly string[]): string {
  return plans.length > MOST_NAMED ? countedPlans(plans) : listed(plans, 'and')
}

function countedPlans(plans: readonly string[]): string {
  if (plans.length <= FIRST_NAMED) return listed(plans, 'and')
  const named =
    plans.length > MOST_NAMED ? [...plans.slice(0, FIRST_NAMED), `${plans.length - FIRST_NAMED} more`] : plans
  return `${NUMBERS[plans.length] ?? plans.length} plans (${listed(named, 'and')})`
}

/** Groups columns with the same text, in the order of the plans. */
export function groupColumns(words: PlanWords, textOf: (column: string) => string): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>()
  for (const column of columnsOf([{}], words)) {
    const text = textOf(column)
    groups.set(text, (groups.get(text) ?? new Set()).add(column))
  }
  return groups
}

/** The words of two configurations, those of the first before others. */
export function bothWords(one: PlanWords, other: PlanWords): PlanWords {
  return {
    plans: [...new Set([...one.plans, ...other.plans])],
    environments: [...new Set([...one.environments, ...other.environments])],
  }
}
