import { getHeapStatistics } from 'node:v8'

/** A transfer that waits for a side that does not read. */
export interface Stalled {
  /** It has waited longest, and there are too many. It ends before this returns. */
  onMostStalled(): void
}

/**
 * The transfers of this process that wait for a side that does not read. Each keeps some 200 KiB in memory, so there is
 * a limit for all of them: beyond it, the one that has waited longest without progress is given up.
 */
export class Stalls {
  readonly #most: number
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Stalled>()

  constructor(most: number) {
    this.#most = most
  }

  /** It waits, if it did not already. */
  begin(one: Stalled): void {
    this.#waiting.add(one)
    if (this.#waiting.size <= this.#most) return
    const [first] = this.#waiting
    if (first === undefined) return
    this.#waiting.delete(first)
    first.onMostStalled()
  }

  end(one: Stalled): void {
    this.#waiting.delete(one)
  }
}

const ONE_FOR_BYTES = 1024 * 1024

/** One for each MiB of the heap's limit, which follows the container's memory. */
export function mostStalls(): number {
  return Math.floor(getHeapStatistics().heap_size_limit / ONE_FOR_BYTES)
}
