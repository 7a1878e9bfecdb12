/** What the processes of a gateway have read, and tell each other, so that all trust the same keys. */

/** Something that a process has read. */
export interface Read {
  /** Says from where; the same in all processes. */
  readonly id: string
  /** When the read began, by `sharedClock`. */
  readonly begun: number
}

/** Of reloads one after another, each with other issuers, the first are forgotten. A configuration names fewer. */
const MOST = 10_000

/** What was read last, by its id. */
export class Newest<T extends Read> {
  readonly #reads = new Map<string, T>()

  get all(): T[] {
    return [...this.#reads.values()]
  }

  /** False if the one that is known is newer: answers may come late. */
  add(read: T): boolean {
    if ((this.#reads.get(read.id)?.begun ?? Number.NEGATIVE_INFINITY) > read.begun) return false
    this.#reads.delete(read.id)
    this.#reads.set(read.id, read)
    const [oldest = ''] = this.#reads.keys()
    if (this.#reads.size > MOST) this.#reads.delete(oldest)
    return true
  }

  take(id: string): T | undefined {
    const read = this.#reads.get(id)
    this.#reads.delete(id)
    return read
  }
}

/** In ms, the same in all processes of a machine; it never goes back. */
export function sharedClock(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
