/** What became of the lines of a log, and the first of those that could not be used. */

/** Why a line could not be used: it is no proper line, of a later version, or its time cannot be. */
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
/** Characters of a line. */
export const LONGEST_SHOWN = 120
/** More than this share of lines that cannot be used, and what the others say cannot be relied on. */
const MOST_TROUBLE = 0.01

export class Intake {
  lines = 0
  /** Lines that describe a request. */
  used = 0
  /** Lines of something else. */
  other = 0
  /** Came so late that later ones had been taken already. */
  late = 0
  readonly troubles: Record<Trouble, number> = { broken: 0, version: 0, clock: 0 }
  readonly shown: ShownTrouble[] = []
  /** A file could be read in part only. */
  isCut = false
  /** Times of the earliest and the latest request, ms since the epoch. */
  from = Number.POSITIVE_INFINITY
  to = Number.NEGATIVE_INFINITY

  trouble(trouble: Trouble, about: ShownTrouble): void {
    this.troubles[trouble] += 1
    if (this.shown.length < MOST_SHOWN) {
      this.shown.push({ ...about, text: about.text.slice(0, LONGEST_SHOWN) })
    }
  }

  /** True when so much is missing that the rest cannot be relied on. */
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

/** As `--json` prints it. */
export function describeIntake(intake: Intake) {
  const { lines, used, other, late, troubles, shown, from, to } = intake
  return {
    lines,
    used,
    other,
    late,
    broken: troubles.broken,
    unknownVersion: troubles.version,
    wrongClock: troubles.clock,
    /** More than 1 % of the lines about requests could not be used, or the rest of a file. */
    damaged: intake.isDamaged,
    firstTroubles: shown,
    /** ISO 8601; null when there was no request. */
    from: isoTime(from),
    to: isoTime(to),
  }
}

/** ISO 8601; null when it is no time. */
export function isoTime(ms: number): string | null {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null
}
