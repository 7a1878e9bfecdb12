/** The windows of limiters that count by themselves, on a clock that the log sets. They count as MemoryWindows does. */
import { BoundedMap } from '../../gateway/decide/store/bounded-map.js'
import type { WindowCount, Windows } from '../../gateway/decide/store/flexible.js'

interface Running {
  used: number
  endsAt: number
}

/** As many keys as a gateway without Redis keeps. */
const MOST_KEYS = 100_000

export class VirtualWindows implements Windows {
  readonly store = 'memory'
  readonly #now: () => number
  readonly #windows = new BoundedMap<Running>(MOST_KEYS)

  constructor(now: () => number) {
    this.#now = now
  }

  async count(key: string, windowMs: number, cost = 1): Promise<WindowCount> {
    const running = this.#running(key)
    if (running === undefined) {
      this.#windows.set(key, { used: cost, endsAt: this.#now() + windowMs })
      return { used: cost, leftMs: windowMs }
    }
    running.used += cost
    return { used: running.used, leftMs: running.endsAt - this.#now() }
  }

  async look(key: string): Promise<WindowCount | undefined> {
    const running = this.#running(key)
    return running && { used: running.used, leftMs: running.endsAt - this.#now() }
  }

  async endIn(key: string, used: number, ms: number): Promise<void> {
    this.#windows.set(key, { used, endsAt: this.#now() + ms })
  }

  async giveBack(key: string, mostLeftMs: number, cost = 1): Promise<void> {
    const running = this.#running(key)
    if (running !== undefined && running.endsAt - this.#now() <= mostLeftMs) running.used -= cost
  }

  #running(key: string): Running | undefined {
    const window = this.#windows.get(key)
    return window !== undefined && window.endsAt > this.#now() ? window : undefined
  }
}
