/** Prints how many lines of a log could be used. */
import type { Io } from '../io.js'
import { count, minuteOf, printable, wrap } from '../text.js'
import { isoTime, type LogIntake } from './intake.js'

const DAMAGED =
  'More than 1 % of the lines, or the rest of a file, could not be read: the numbers may be far from the truth.'

/** A few lines that end in a newline. */
export function intakeText(intake: LogIntake, io: Io): string {
  const { lines, used, troubles, late, shown, from, to } = intake
  const parts = [`${count(lines, 'line')}, ${count(used, 'record')}`]
  if (troubles.broken > 0) parts.push(`${count(troubles.broken, 'broken line')} skipped`)
  if (troubles.version > 0) parts.push(`${count(troubles.version, 'record')} of an unknown version skipped`)
  if (troubles.clock > 0) parts.push(`${count(troubles.clock, 'record')} with an impossible time skipped`)
  if (late > 0) parts.push(`${count(late, 'record')} came too late to be put in order`)
  const span =
    used === 0
      ? ''
      : `${wrap(`From ${minuteOf(isoTime(from) ?? '')} to ${minuteOf(isoTime(to) ?? '')} (UTC).`, io.columns)}\n`
  const warning = intake.isDamaged ? `${io.style('yellow', wrap(DAMAGED, io.columns))}\n` : ''
  const first = shown.map(({ file, line, reason, text }) => {
    const place = line === 0 ? file : `${file}:${line}`
    return io.style(
      'yellow',
      wrap(printable([place, reason, text.slice(0, 60)].filter(Boolean).join(': ')), io.columns),
    )
  })
  return [
    `${wrap(`${parts.join(', ')}.`, io.columns)}\n${span}`,
    ...first.map(line => `${line}\n`),
    warning,
  ].join('')
}
