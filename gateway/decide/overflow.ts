/** Requests in flight in this process that a report-only in-flight rule would have refused. */

export class Overflow {
  readonly #counts = new Map<string, number>()

  /** Adds a request to `key`. Returns how many there are now, and what to call when the request has ended. */
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
