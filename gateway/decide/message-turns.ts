/**
 * WebSockets of this process whose messages wait for the same counters. Each has its turn, in the order in which they
 * began to wait: otherwise one of them could take each new window, and the others would wait in vain.
 */
export interface Waiting {
  /** Called when it may be its turn. */
  onTurn?: (() => void) | undefined
}

export class MessageTurns {
  /** By counter key, the first to wait first. */
  readonly #waiting = new Map<string, Set<Waiting>>()

  /** True unless others have waited longer for one of the keys. */
  isTurn(one: Waiting, keys: readonly string[]): boolean {
    return keys.every(key => {
      const [first] = this.#waiting.get(key) ?? []
      return first === undefined || first === one
    })
  }

  /** How many others wait for one of the keys, at most. */
  others(one: Waiting, keys: readonly string[]): number {
    let most = 0
    for (const key of keys) {
      const waiting = this.#waiting.get(key)
      if (waiting !== undefined) most = Math.max(most, waiting.size - (waiting.has(one) ? 1 : 0))
    }
    return most
  }

  begin(one: Waiting, keys: readonly string[]): void {
    for (const key of keys) {
      const waiting = this.#waiting.get(key)
      if (waiting === undefined) this.#waiting.set(key, new Set([one]))
      else waiting.add(one)
    }
  }

  /** It waits no longer: the next ones may have their turn, once the caller is done. */
  end(one: Waiting, keys: readonly string[]): void {
    for (const key of keys) {
      const waiting = this.#waiting.get(key)
      if (!waiting?.delete(one)) continue
      const [next] = waiting
      if (next === undefined) this.#waiting.delete(key)
      else queueMicrotask(() => next.onTurn?.())
    }
  }
}
