/**
 * Notices when a window's use reaches a share that somebody wants to know of. Works on the readings that verdicts have
 * anyway; what it asks of Redis delays no request.
 */
import { createHash } from 'node:crypto'
import type { Project } from '../types.js'
import type { Judgement, Outcome, Reading, Verdict } from '../verdict.js'
import { minuteOf, notificationOf, type Shown } from './message.js'
import { type Notice, type NoticedWindow, noticeOf } from './notice.js'
import type { Notifications } from './notifications.js'

/** Shorter windows are reported as if they had this length: a busy key fills a window of a second again and again. */
const SHORTEST_MS = 60_000
/** Claims remembered by this process; a forgotten one only costs a question more. */
const MOST_KNOWN = 10_000
/** Calendar periods begin by the clock: a claim that outlives one is of no hindrance to the next, which has another name. */
const BEYOND_MS = 60_000
const SLACK_MS = { least: 10_000, most: 3_600_000 }

/** A claim as this process knows it; times in ms since the epoch. */
interface Known {
  /** It exists until then. */
  until: number
  /** When it has to be extended while a rolling window stays above the threshold. */
  refreshAt: number
  /** True once use was seen below the threshold. */
  hasFallen: boolean
}

export interface CrossingParts {
  readonly notifications: Notifications
  /** How projects and keys appear in messages. */
  readonly shown: Shown
  readonly now?: () => number
}

type Watched = Verdict | undefined | Promise<Verdict | undefined>

export class Crossings {
  readonly #notifications: Notifications
  readonly #shown: Shown
  readonly #now: () => number
  readonly #known = new Map<string, Known>()
  readonly #open = new Set<Promise<void>>()

  constructor({ notifications, shown, now = Date.now }: CrossingParts) {
    this.#notifications = notifications
    this.#shown = shown
    this.#now = now
  }

  /** Looks at a verdict once it is there, and returns it as it is. */
  watch<V extends Watched>(verdict: V, project: Project): V {
    if (verdict instanceof Promise) {
      verdict.then(
        given => this.#lookAt(given, project),
        () => undefined,
      )
    } else this.#lookAt(verdict, project)
    return verdict
  }

  /** Looks at what one rule has said. */
  look(outcome: Outcome, project: Project): void {
    const notice = noticeOf(outcome.rule)
    if (notice === undefined) return
    for (const [i, reading] of outcome.readings.entries()) {
      const window = notice.windows[i]
      if (window === undefined || reading.used === undefined) continue
      for (const percent of notice.at) {
        if (hasReached(reading, percent)) this.#above(outcome, reading, window, percent, notice, project)
        else if (window.rollingMs !== undefined && this.#known.size > 0)
          this.#below(nameOf(outcome, reading, window, percent, 0))
      }
    }
  }

  /** Resolves when no claim is awaited any more, and what was claimed has been passed on. */
  async idle(): Promise<void> {
    await Promise.all(this.#open)
  }

  #lookAt(verdict: Verdict | undefined, project: Project): void {
    if (verdict === undefined) return
    for (const outcome of verdict.outcomes) this.look(outcome, project)
    if (verdict.settled === undefined) this.#lookBeside(verdict, project)
    else void verdict.settled.then(() => this.#lookBeside(verdict, project))
  }

  #lookBeside({ reportOnly }: Judgement, project: Project): void {
    for (const outcome of reportOnly) this.look(outcome, project)
  }

  #above(
    outcome: Outcome,
    reading: Reading,
    window: NoticedWindow,
    percent: number,
    notice: Notice,
    project: Project,
  ): void {
    const now = this.#now()
    const name = nameOf(outcome, reading, window, percent, now)
    const terms = termsOf(reading, window, now)
    const known = this.#known.get(name)
    const isNew = known === undefined || now >= known.until
    if (!isNew && !known.hasFallen && now < known.refreshAt && !terms.outlasts(known)) return
    this.#remember(name, { until: now + terms.ms, refreshAt: terms.refreshAt, hasFallen: false })
    const claimed = this.#notifications.claim(claimName(name), terms.ms).then(async isFirst => {
      // A claim that only had to be extended may have been lost meanwhile, with the Redis that held it.
      if (!isFirst || !(isNew || known.hasFallen)) return
      const about = { rule: outcome.rule, key: outcome.key, reading, window: window.name, percent, project }
      await this.#notifications.send(notificationOf({ ...about, notice, now }, this.#shown))
    })
    this.#open.add(claimed)
    void claimed.finally(() => this.#open.delete(claimed))
  }

  #below(name: string): void {
    const known = this.#known.get(name)
    if (known === undefined || known.hasFallen) return
    known.hasFallen = true
    known.until = Math.min(known.until, this.#now() + SHORTEST_MS)
    this.#notifications.shorten(claimName(name), SHORTEST_MS)
  }

  #remember(name: string, known: Known): void {
    this.#known.delete(name)
    this.#known.set(name, known)
    if (this.#known.size <= MOST_KNOWN) return
    const [oldest] = this.#known.keys()
    this.#known.delete(oldest as string)
  }
}

/** What is refused has reached every threshold, even where what it would have cost is more than what is left. */
function hasReached({ violated, used = 0, quota }: Reading, percent: number): boolean {
  return violated || used * 100 >= quota * percent
}

/** How long a claim lasts. */
function termsOf({ resetMs, calendar }: Reading, { rollingMs }: NoticedWindow, now: number) {
  if (rollingMs === undefined) {
    const ms = Math.ceil(calendar ? resetMs + BEYOND_MS : Math.max(resetMs, SHORTEST_MS))
    // A key that is blocked stays refused beyond its window.
    return { ms, refreshAt: Infinity, outlasts: (known: Known) => now + ms > known.until + SHORTEST_MS }
  }
  const lasts = Math.max(rollingMs, SHORTEST_MS)
  const slack = Math.min(Math.max(lasts / 4, SLACK_MS.least), SLACK_MS.most)
  return { ms: Math.ceil(lasts + slack), refreshAt: now + slack, outlasts: () => false }
}

/** The name of a claim in this process; that of a calendar period contains its end, to the minute. */
function nameOf(
  { key }: Outcome,
  { calendar, resetMs }: Reading,
  { name }: NoticedWindow,
  percent: number,
  now: number,
): string {
  const period = calendar ? `:${minuteOf(now + resetMs)}` : ''
  return `${key}\n${name ?? ''}${period}\n${percent}`
}

/** The same for every gateway; keys may hold addresses, so they are hashed. */
function claimName(name: string): string {
  return createHash('sha256').update(name).digest('base64url')
}
