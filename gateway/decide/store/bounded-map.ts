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
  // The order is a linked list, not the map's own: to find the oldest entry there, a new iterator would have to skip
  // the places of all deleted entries, and a lasting one would keep alive every table that the map has outgrown.
  #oldest: Entry<Value> | undefined
  #newest: Entry<Value> | undefined

  /** @param most greatest number of entries */
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
