/** What identifiers share by its name: a reload keeps what is known, because the next configuration uses it before the last lets go. */

export interface InUse<T> {
  readonly value: T
  /** The last one closes it. To be called once. */
  release(): void
}

export class Shared<T extends { close(): void }> {
  readonly #open = new Map<string, { readonly value: T; users: number }>()
  readonly #ended: (value: T, name: string) => void

  /** @param ended called when the last user has let go of a thing, before it is closed */
  constructor(ended: (value: T, name: string) => void = () => undefined) {
    this.#ended = ended
  }

  /** The thing of this name for one more user; made by `open` for the first. */
  use(name: string, open: () => T): InUse<T> {
    const one = this.#open.get(name) ?? { value: open(), users: 0 }
    this.#open.set(name, one)
    one.users += 1
    return {
      value: one.value,
      release: () => {
        one.users -= 1
        if (one.users > 0) return
        this.#open.delete(name)
        this.#ended(one.value, name)
        one.value.close()
      },
    }
  }

  get(name: string): T | undefined {
    return this.#open.get(name)?.value
  }

  get values(): T[] {
    return [...this.#open.values()].map(({ value }) => value)
  }
}
