/** A map that forgets what was set longest ago: its memory stays bounded under a flood of keys. */
export class BoundedMap<Value> {
  readonly #most: number
  readonly #entries = new Map<string, Value>()
  /** A live iterator: one begun anew would pass by all the places of entries that were deleted before. */
  readonly #oldest = this.#entries.keys()

  /** @param most how many entries it holds */
  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  /** Sets `key` as the newest entry, and returns the key that had to be forgotten for it. */
  set(key: string, value: Value): string | undefined {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#most) return undefined
    const oldest = this.#oldest.next().value as string
    this.#entries.delete(oldest)
    return oldest
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}
