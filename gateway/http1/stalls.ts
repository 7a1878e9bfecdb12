import { getHeapStatistics } from 'node:v8'

/** A transfer that waits for a side that does not read. */
export interface Stalled {
  /** The client it is counted for: an address or a network. */
  readonly client: string
  /** There are too many, and it is given up. It ends before this returns. */
  onMostStalled(): void
}

/**
 * The transfers of this process that wait for a side that does not read. Each keeps some 200 KiB in memory, so there is
 * a limit for all of them. Beyond it, the client with the most of them loses the one that has waited longest without
 * progress: otherwise a client with many that read a little now and then would cut those of all others.
 */
export class Stalls {
  readonly #most: number
  #count = 0
  /** By client, in the order in which they began to wait. */
  readonly #waiting = new Map<string, Set<Stalled>>()

  constructor(most: number) {
    this.#most = most
  }

  /** It waits, if it did not already. */
  begin(one: Stalled): void {
    const own = this.#waiting.get(one.client)
    if (own?.has(one)) return
    if (own === undefined) this.#waiting.set(one.client, new Set([one]))
    else own.add(one)
    this.#count += 1
    if (this.#count > this.#most) this.#giveUpOne()
  }

  end(one: Stalled): void {
    const own = this.#waiting.get(one.client)
    if (!own?.delete(one)) return
    this.#count -= 1
    if (own.size === 0) this.#waiting.delete(one.client)
  }

  #giveUpOne(): void {
    let most: Set<Stalled> | undefined
    for (const own of this.#waiting.values()) if (own.size > (most?.size ?? 0)) most = own
    const [first] = most ?? []
    if (first === undefined) return
    this.end(first)
    first.onMostStalled()
  }
}

const ONE_FOR_BYTES = 1024 * 1024

/** One for each MiB of the heap's limit, which follows the container's memory. */
export function mostStalls(): number {
  return Math.floor(getHeapStatistics().heap_size_limit / ONE_FOR_BYTES)
}
