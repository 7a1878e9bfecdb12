/**
 * A map whose own entries replace and extend another's. It costs what its own entries cost, however many the other has.
 */
export class Overlay<V> implements ReadonlyMap<string, V> {
  readonly #below: ReadonlyMap<string, V>
  readonly #own = new Map<string, V>()
  #added = 0

  constructor(below: ReadonlyMap<string, V>) {
    this.#below = below
  }

  /** Names that the other map lacks. */
  get added(): string[] {
    return [...this.#own.keys()].filter(name => !this.#below.has(name))
  }

  get size(): number {
    return this.#below.size + this.#added
  }

  set(name: string, value: V): void {
    if (!this.has(name)) this.#added += 1
    this.#own.set(name, value)
  }

  get(name: string): V | undefined {
    return this.#own.get(name) ?? this.#below.get(name)
  }

  has(name: string): boolean {
    return this.#own.has(name) || this.#below.has(name)
  }

  /** In the order of the other map, then added entries. */
  *entries(): MapIterator<[string, V]> {
    for (const [name, value] of this.#below) yield [name, this.#own.get(name) ?? value]
    for (const [name, value] of this.#own) if (!this.#below.has(name)) yield [name, value]
  }

  *keys(): MapIterator<string> {
    for (const [name] of this.entries()) yield name
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value
  }

  forEach(visit: (value: V, name: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [name, value] of this.entries()) visit(value, name, this)
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries()
  }
}
