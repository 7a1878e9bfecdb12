import { refreshLock, releaseLock } from '../../config/file-lock.js'

const REFRESH_MS = 5_000

/** A lock that is refreshed while it is held; its signal says that it was lost, or that there is no more use for it. */
export class HeldLock {
  readonly signal: AbortSignal
  readonly #lost = new AbortController()
  readonly #timer: NodeJS.Timeout
  #held: string

  constructor(held: string, end: AbortSignal) {
    this.#held = held
    this.signal = AbortSignal.any([end, this.#lost.signal])
    this.#timer = setInterval(() => this.#refresh(), REFRESH_MS).unref()
  }

  release(): void {
    clearInterval(this.#timer)
    releaseLock(this.#held)
  }

  #refresh(): void {
    try {
      this.#held = refreshLock(this.#held)
    } catch {
      this.#lost.abort()
    }
  }
}
