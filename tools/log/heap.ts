/** A priority queue by time. */

interface Timed<T> {
  readonly at: number
  /** Keeps the order of arrival among equal times. */
  readonly number: number
  readonly value: T
}

export class TimeHeap<T> {
  readonly #entries: Timed<T>[] = []
  #added = 0

  get size(): number {
    return this.#entries.length
  }

  /** The earliest time; undefined when empty. */
  get next(): number | undefined {
    return this.#entries[0]?.at
  }

  add(at: number, value: T): void {
    const entries = this.#entries
    const entry = { at, number: this.#added++, value }
    let i = entries.push(entry) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!isBefore(entry, entries[parent] as Timed<T>)) break
      entries[i] = entries[parent] as Timed<T>
      i = parent
    }
    entries[i] = entry
  }

  /** Removes the earliest; undefined when empty. */
  take(): { readonly at: number; readonly value: T } | undefined {
    const entries = this.#entries
    const first = entries[0]
    const last = entries.pop()
    if (first === undefined || last === undefined || entries.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= entries.length) break
      const right = entries[child + 1]
      if (right !== undefined && isBefore(right, entries[child] as Timed<T>)) child += 1
      if (!isBefore(entries[child] as Timed<T>, last)) break
      entries[i] = entries[child] as Timed<T>
      i = child
    }
    entries[i] = last
    return first
  }
}

function isBefore<T>(a: Timed<T>, b: Timed<T>): boolean {
  return a.at < b.at || (a.at === b.at && a.number < b.number)
}
