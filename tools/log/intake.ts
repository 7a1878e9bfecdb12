/** Counts the lines of a log by whether they could be used, with the first that could not; as data and as text. */
import type { Io } from '../io.js'
import { count, minuteOf, printable, wrap } from '../text.js'

/** Why a line could not be used: it is malformed, of a later version, or has an impossible time. */
export type Trouble = 'broken' | 'version' | 'clock'

export interface ShownTrouble {
  readonly file: string
  /** From 1; 0 for the file itself. */
  readonly line: number
  readonly reason: string
  /** The beginning of the line. */
  readonly text: string
}

const MOST_SHOWN = 3
/** Most characters of a line that are shown. */
export const LONGEST_SHOWN = 120
/** With a larger share of unusable lines, the result is not reliable. */
const MOST_TROUBLE = 0.01

export class LogIntake {
  lines = 0
  /** Lines that describe a request. */
  used = 0
  /** Lines of something else. */
  other = 0
  /** Records so late that later ones had already been processed. */
  late = 0
  readonly troubles: Record<Trouble, number> = { broken: 0, version: 0, clock: 0 }
  readonly shown: ShownTrouble[] = []
  /** True when a file could be read only in part. */
  isCut = false
  /** Time of the earliest request (`to`: of the latest), ms since the epoch. */
  from = Number.POSITIVE_INFINITY
  to = Number.NEGATIVE_INFINITY

  trouble(trouble: Trouble, about: ShownTrouble): void {
    this.troubles[trouble] += 1
    if (this.shown.length < MOST_SHOWN) {
      this.shown.push({ ...about, text: about.text.slice(0, LONGEST_SHOWN) })
    }
  }

  /** True when so much is missing that the result is not reliable. */
  get isDamaged(): boolean {
    const { broken, version, clock } = this.troubles
    const troubles = broken + version + clock
    return this.isCut || troubles > MOST_TROUBLE * (this.used + troubles)
  }

  at(time: number): void {
    if (time < this.from) this.from = time
    if (time > this.to) this.to = time
  }
}

/** What was read of a log, as `--json` prints it: numbers of lines. */
export interface IntakeDocument {
  readonly lines: number
  readonly used: number
  readonly other: number
  readonly late: number
  readonly broken: number
  readonly unknownVersion: number
  readonly wrongClock: number
  /** True when more than 1 % of the lines about requests could not be used, or the rest of a file. */
  readonly damaged: boolean
  readonly firstTroubles: readonly ShownTrouble[]
  /** Times of the first and the last request, ISO 8601; null when there was no request. */
  readonly from: string | null
  readonly to: string | null
}

export function describeIntake(intake: LogIntake): IntakeDocument {
  const { lines, used, other, late, troubles, shown, from, to } = intake
  return {
    lines,
    used,
    other,
    late,
    broken: troubles.broken,
    unknownVersion: troubles.version,
    wrongClock: troubles.clock,
    damaged: intake.isDamaged,
    firstTroubles: shown,
    from: isoTime(from),
    to: isoTime(to),
  }
}

/** ISO 8601; null when it is not a finite time. */
export function isoTime(ms: number): string | null {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null
}

const DAMAGED =
  'More than 1 % of the lines, or the rest of a file, could not be read: the numbers may be far from the truth.'

/** How many lines of a log could be used, as a few lines that end in a newline. */
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
