/** Requests of this process that a report-only in-flight rule would have refused, and that are in flight all the same. */

export class Overflow {
  readonly #counts = new Map<string, number>()

  /** One more by `key`: how many there are now, and what to call when it has ended. */
  enter(key: string): { readonly count: number; leave(): void } {
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return { count, leave: () => this.#leave(key) }
  }

  #leave(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1
    if (left > 0) this.#counts.set(key, left)
    else this.#counts.delete(key)
  }
}
