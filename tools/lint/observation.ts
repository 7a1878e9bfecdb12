/** Rules that only report, for longer than anybody meant to. */
import { listed, type Path } from '../../config/problem.js'
import { count } from '../text.js'
import type { Remark, Subject } from './finding.js'

const DAY_MS = 86_400_000

interface Observer {
  readonly what: string
  readonly path: Path
  readonly since: string | undefined
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
  return files.flatMap(({ file, observers }) => [
    ...observers.flatMap(observer => tooLong(observer, file, subject)),
    ...undated(observers, file),
  ])
}

function tooLong({ what, path, since }: Observer, file: string, subject: Subject): Remark[] {
  if (since === undefined) return []
  const days = Math.floor((subject.now - Date.parse(since)) / DAY_MS)
  if (days <= subject.reportOnlyDays) return []
  const message = `Report-only since ${since}, for ${count(days, 'day')}: enforce ${what}, or remove it.`
  return [{ severity: 'warning', file, path: [...path, 'since'], message }]
}

/** No file tells when a mode was written, and a copy's date is a lie: only the operator knows. */
function undated(observers: readonly Observer[], file: string): Remark[] {
  const undated = observers.filter(({ since }) => since === undefined)
  const [first] = undated
  if (first === undefined) return []
  const names = listed(
    undated.map(({ what }) => what),
    'and',
  )
  const message = `Nothing says since when ${names} only report${undated.length === 1 ? 's' : ''}. With since: 2026-01-31, say, this check tells when it has lasted long.`
  return [{ severity: 'note', file, path: [...first.path, 'mode'], message }]
}
