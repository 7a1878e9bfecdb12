/** Prints effective limits as tables. */
import { basename } from 'node:path'
import { bucketOfTrial } from '../config/words/share.js'
import { costTexts, windowText } from '../gateway/explain/settings.js'
import type { Io } from './io.js'
import type { BucketLimit, EndpointLimit, Fallen, LimitsOf, Unlimited } from './limits.js'
import { columns, table } from './table.js'
import { grouped, wrap } from './text.js'

export function writeLimits({ for: whom, buckets }: LimitsOf, io: Io): void {
  io.out(`\n${io.style('bold', wrap(whom, io.columns))}\n`)
  io.out(table(BUCKET_COLUMNS, buckets.map(rowOf), io.columns))
  for (const limit of buckets) {
    if (limit.falls_to !== undefined || limit.leases === undefined) continue
    io.out(`${wrap(`${limit.bucket}: ${limit.leases}`, io.columns)}\n`)
  }
}

const BUCKET_COLUMNS = [
  ...columns(['Bucket'], ['per second', 'per minute']),
  ...columns(['Notes', 'Written at']),
]

function rowOf(bucket: BucketLimit | Unlimited | Fallen): string[] {
  if (bucket.falls_to !== undefined) {
    const others = bucket.falls_to.map(other => other ?? 'no limit').join(', ')
    return [bucket.bucket, '-', '-', `falls to ${others}`, '-']
  }
  const { src } = bucket
  if (bucket.unlimited) return [bucket.bucket, '-', '-', unlimitedText(bucket), basename(src)]
  const [second, minute] = [bucket.burst, bucket.sustained].map(requests => {
    return requests === undefined ? '-' : grouped(requests)
  }) as [string, string]
  return [bucket.bucket, second, minute, notesOf(bucket), basename(src)]
}

function unlimitedText({ mode }: Unlimited): string {
  return mode === 'report-only' ? `unlimited, ${mode}` : 'unlimited'
}

/** Whatever differs from the defaults. */
function notesOf(limit: BucketLimit): string {
  const { bucket, key, algorithm, lease, mode, enforceFor, windows = [], costs } = limit
  const isTrial = bucketOfTrial(bucket) !== undefined
  const notes = [
    ...windows.map(windowText),
    ...(costs === undefined ? [] : [`costs ${costTexts(costs).join(', ')}`]),
    key === undefined ? '' : `by ${key.join(' + ')}`,
    isTrial ? 'trial' : mode === 'report-only' ? mode : '',
    enforceFor === undefined ? '' : `for ${enforceFor} of projects`,
    algorithm === 'sliding-window' ? '' : algorithm,
    lease ? 'lease' : '',
  ]
  return notes.filter(Boolean).join(', ') || '-'
}

export function writeEndpointLimits(limits: readonly EndpointLimit[], io: Io): void {
  if (limits.length === 0) return
  io.out(`\n${io.style('bold', 'Endpoint rules, for every project')}\n`)
  const titles = columns(['Rule', 'Limit', 'Counted by', 'Mode', 'Written at'])
  const rows = limits.map(({ rule, limit, key, mode, enforceFor, src }) => [
    rule,
    limit,
    key.join(' + '),
    enforceFor === undefined ? mode : `${mode} for ${enforceFor}`,
    basename(src),
  ])
  io.out(table(titles, rows, io.columns))
}
