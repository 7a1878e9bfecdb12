/** Keeps the log small: faults that may occur with every request are repeated seldom, and floods are cut by the second. */
import type { Log } from '../types.js'

const EVERY_MS = 10_000
/** Distinct messages that are tracked; all further ones share one entry. */
const MOST = 200

interface Said {
  at: number
  /** Occurrences since the last line. */
  unsaid: number
}

/**
 * Passes on the first of each message about one plugin and rule, then at most one in ten seconds, with the number of
 * omitted ones in `repeated`.
 */
export function boundedLog(log: Log, now: () => number = () => performance.now()): Log {
  const said = new Map<string, Said>()
  const bounded = (level: keyof Log) => (fields: object, message: string) => {
    const { plugin, rule } = fields as { plugin?: unknown; rule?: unknown }
    const own = `${level} ${plugin} ${rule} ${message}`
    const key = said.has(own) || said.size < MOST ? own : ''
    const before = said.get(key)
    if (before !== undefined && now() - before.at < EVERY_MS) {
      before.unsaid += 1
      return
    }
    said.set(key, { at: now(), unsaid: 0 })
    log[level](before?.unsaid ? { ...fields, repeated: before.unsaid } : fields, message)
  }
  return { debug: bounded('debug'), info: bounded('info'), warn: bounded('warn'), error: bounded('error') }
}

export const LINES_PER_SECOND = 100
const SECOND = 1000

/** Counts lines by sort within a second. A second begins with the first line after a pause. */
export class LineBudget {
  readonly #onDropped: (sort: string, dropped: number) => void
  readonly #spent = new Map<string, number>()
  #second: NodeJS.Timeout | undefined

  /** `onDropped` is called at the end of each second with the number of lines of a sort that were dropped. */
  constructor(onDropped: (sort: string, dropped: number) => void) {
    this.#onDropped = onDropped
  }

  /** True when one more line of this sort may be written. */
  spend(sort: string): boolean {
    this.#second ??= setTimeout(() => this.close(), SECOND).unref()
    const spent = (this.#spent.get(sort) ?? 0) + 1
    this.#spent.set(sort, spent)
    return spent <= LINES_PER_SECOND
  }

  /** Ends the second and reports what was dropped in it. */
  close(): void {
    clearTimeout(this.#second)
    this.#second = undefined
    for (const [sort, spent] of this.#spent) {
      if (spent > LINES_PER_SECOND) this.#onDropped(sort, spent - LINES_PER_SECOND)
    }
    this.#spent.clear()
  }
}
