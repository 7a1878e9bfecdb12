interface Entry<Value> {
  readonly key: string
  readonly value: Value
  older: Entry<Value> | undefined
  newer: Entry<Value> | undefined
}

/** A map that forgets what was set longest ago: its memory stays bounded under a flood of keys. */
export class BoundedMap<Value> {
  readonly #most: number
  readonly #entries = new Map<string, Entry<Value>>()
  // Order by links, not by the map's own: to find the oldest there, an iterator must either begin anew and pass by the
  // places of all entries that were deleted, or live on and keep every table that the map has outgrown.
  #oldest: Entry<Value> | undefined
  #newest: Entry<Value> | undefined

  /** @param most how many entries it holds */
  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** Sets `key` as the newest entry, and returns the key that had to be forgotten for it. */
  set(key: string, value: Value): string | undefined {
    this.delete(key)
    const entry: Entry<Value> = { key, value, older: this.#newest, newer: undefined }
    if (this.#newest === undefined) this.#oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
    this.#entries.set(key, entry)
    const oldest = this.#oldest
    if (this.#entries.size <= this.#most || oldest === undefined) return undefined
    this.delete(oldest.key)
    return oldest.key
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    const { older, newer } = entry
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
  }
}
