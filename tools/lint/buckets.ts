/**
 * Reports buckets that lack a quota where that is surprising: everywhere, in one row only, or where nothing else
 * limits.
 */

import { describeColumns } from '../../config/checks/columns.js'
import type { Path } from '../../config/problem.js'
import { patternsOf } from '../../config/words/bucket.js'
import { columnsOf } from '../../config/words/words.js'
import { type Pattern, parsePattern } from '../../gateway/policy/pattern.js'
import { type Extent, extentOf, sampleRequestsOf } from '../../gateway/policy/sample-requests.js'
import type { Mode } from '../../gateway/types.js'
import type { Remark, Subject } from './lint.js'

/** With fewer rows than this, nothing can be called usual. */
const FEWEST_ROWS = 3

interface Bucket {
  readonly name: string
  readonly file: string
  readonly mode: Mode
  readonly patterns: readonly Pattern[]
}
interface Row {
  readonly file: string
  readonly mode: Mode
  readonly path: Path
  readonly columns: ReadonlySet<string>
}

export function checkBuckets(subject: Subject): Remark[] {
  const buckets = bucketsOf(subject)
  const rows = rowsOf(subject)
  const extent = extentOf(buckets.flatMap(({ patterns }) => patterns))
  return buckets.flatMap(bucket => {
    const remark = withoutQuota(subject, bucket)
    if (remark !== undefined) return remark
    const unlimited = rows.filter(isLike(bucket)).flatMap(row => unlimitedIn(subject, bucket, row, extent))
    return unlimited.length > 0 ? unlimited : missingOnce(subject, bucket, rows, extent)
  })
}

function bucketsOf({ limits }: Subject): Bucket[] {
  return limits.flatMap(({ file, document }) =>
    Object.entries(document.buckets).map(([name, bucket]) => ({
      name,
      file,
      mode: document.mode,
      patterns: patternsOf(bucket, []).map(({ text }) => parsePattern(text)),
    })),
  )
}

function rowsOf({ limits, loaded }: Subject): Row[] {
  return limits.flatMap(({ file, document: { mode, limits } }) =>
    limits.map((row, i) => ({
      file,
      mode,
      path: ['limits', i],
      columns: columnsOf(row.for, loaded.config.planWords),
    })),
  )
}

/**
 * Selects rows of the bucket's mode: a report-only bucket may be tried on some rows only, and passes no requests on to
 * enforced ones.
 */
function isLike({ mode }: Bucket): (row: Row) => boolean {
  return row => row.mode === mode
}

function withoutQuota({ loaded }: Subject, { name, file }: Bucket): Remark | undefined {
  const { columns, projects } = loaded.compiled.policy
  const isUsed = [...columns.values(), ...projects.values()].some(({ rules }) => rules.has(name))
  if (isUsed) return undefined
  const message = `No row gives bucket "${name}" a quota, so it does nothing: its requests fall into other buckets.`
  return { severity: 'warning', file, path: ['buckets', name], message }
}

/** The columns of a row in which the bucket has no quota in its table, from whatever file. */
function missingIn({ loaded }: Subject, { name, mode }: Bucket, { columns }: Row): string[] {
  const tables = loaded.compiled.policy.columns
  return [...columns].filter(column => tables.get(column)?.rules.get(name)?.mode !== mode)
}

/** The buckets that take the bucket's requests instead; undefined stands for none. */
function fallTo({ loaded }: Subject, { patterns, mode }: Bucket, column: string, extent: Extent) {
  const trie = loaded.compiled.policy.columns.get(column)?.buckets[mode]
  const samples = patterns.flatMap(pattern => sampleRequestsOf(pattern, extent))
  return new Set(samples.map(({ method, path }) => trie?.find(method, path)?.value))
}

function unlimitedIn(subject: Subject, bucket: Bucket, row: Row, extent: Extent): Remark[] {
  const columns = missingIn(subject, bucket, row).filter(column =>
    fallTo(subject, bucket, column, extent).has(undefined),
  )
  if (columns.length === 0) return []
  const where = describeColumns(new Set(columns), subject.loaded.config.planWords)
  const left = bucket.mode === 'enforce' ? 'limited' : 'watched'
  const message = `Requests of bucket "${bucket.name}" are not ${left} for ${where}: it has no quota there, and no other bucket takes all of them. Give it one, or give one to a bucket with "*".`
  return [{ severity: 'warning', file: row.file, path: row.path, message }]
}

function missingOnce(subject: Subject, bucket: Bucket, all: readonly Row[], extent: Extent): Remark[] {
  const rows = all.filter(({ file }) => file === bucket.file)
  const without = rows.filter(row => missingIn(subject, bucket, row).length > 0)
  const [row] = without
  if (row === undefined || without.length > 1 || rows.length < FEWEST_ROWS) return []
  const [column] = missingIn(subject, bucket, row) as [string]
  const others = [...fallTo(subject, bucket, column, extent)].map(name => `"${name}"`).join(', ')
  const message = `Every row but this one gives bucket "${bucket.name}" a quota. Here its requests fall to ${others}.`
  return [{ severity: 'warning', file: row.file, path: row.path, message }]
}
