/** Keeps the log small in a flood: limits the lines of each sort per second, and reports how many were left out. */

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
