/** Reports rules that have been report-only, or enforced for a share, longer than intended. */
import { listed, type Path } from '../../config/problem.js'
import { count } from '../text.js'
import type { Remark, Subject } from './lint.js'

const DAY_MS = 86_400_000

interface Observer {
  readonly what: string
  readonly path: Path
  readonly since: string | undefined
}

/** A rule or file that may be enforced for a share. */
interface Dated {
  readonly enforceFor?: number | undefined
  readonly since?: string | undefined
}

export function checkObservation(subject: Subject): Remark[] {
  const files = [
    ...subject.limits.map(({ file, document: { mode, since } }) => ({
      file,
      observers: mode === 'report-only' ? [{ what: 'the buckets of this file', path: [], since }] : [],
    })),
    ...[...subject.rules, ...subject.loaded.config.access].map(({ file, document }) => ({
      file,
      observers: document.rules.flatMap(({ id, mode, since }, i): Observer[] =>
        mode === 'report-only' ? [{ what: `"${id}"`, path: ['rules', i], since }] : [],
      ),
    })),
  ]
  const shares = [
    ...subject.limits.flatMap(({ file, document }) => lastingShare(document, file, [], subject)),
    ...subject.rules.flatMap(({ file, document }) =>
      document.rules.flatMap((rule, i) => lastingShare(rule, file, ['rules', i], subject)),
    ),
  ]
  const reports = files.flatMap(({ file, observers }) => [
    ...observers.flatMap(observer => tooLong(observer, file, subject)),
    ...undated(observers, file),
  ])
  return [...reports, ...shares]
}

function lastingShare({ enforceFor, since }: Dated, file: string, path: Path, subject: Subject): Remark[] {
  const days = since === undefined ? 0 : daysSince(since, subject)
  if (enforceFor === undefined || days <= subject.reportOnlyDays) return []
  const message = `Enforced for ${enforceFor}% since ${since}, for ${count(days, 'day')}: raise the share, or remove it.`
  return [{ severity: 'warning', file, path: [...path, 'since'], message }]
}

function daysSince(day: string, { now }: Subject): number {
  return Math.floor((now - Date.parse(day)) / DAY_MS)
}

function tooLong({ what, path, since }: Observer, file: string, subject: Subject): Remark[] {
  if (since === undefined) return []
  const days = daysSince(since, subject)
  if (days <= subject.reportOnlyDays) return []
  const message = `Report-only since ${since}, for ${count(days, 'day')}: enforce ${what}, or remove it.`
  return [{ severity: 'warning', file, path: [...path, 'since'], message }]
}

/** No file records when a mode was set, and a copied file's date is wrong: only the operator knows. */
function undated(observers: readonly Observer[], file: string): Remark[] {
  const undated = observers.filter(({ since }) => since === undefined)
  const [first] = undated
  if (first === undefined) return []
  const names = listed(
    undated.map(({ what }) => what),
    'and',
  )
  const message = `Nothing says since when ${names} only report${undated.length === 1 ? 's' : ''}. Write a day, such as since: 2026-01-31, and this check warns when it has lasted long.`
  return [{ severity: 'note', file, path: [...first.path, 'mode'], message }]
}
