/** The stream of snapshots: open while the tab is visible, reopened with growing pauses when it is lost. */
import type { LiveSnapshot } from '../admin/live-snapshot.js'
import { ask, RefusedCall, sentence } from './api.js'
import { readEvents } from './event-stream.js'

export type ConnectionState =
  | { readonly state: 'connecting' | 'live' | 'hidden' }
  /** The admin port requires a key, or another one than was given; 429 after too many wrong ones. */
  | { readonly state: 'key'; readonly status: number; readonly reason: string }
  /** Retried at `retryAt`, or being retried now. */
  | { readonly state: 'lost'; readonly reason: string; readonly retryAt: number | undefined }

export interface ConnectionListener {
  snapshot(snapshot: LiveSnapshot): void
  standing(standing: ConnectionState): void
}

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/**
 * Snapshots arrive every second: after this much silence the connection counts as lost, whatever the network reports.
 */
const SILENCE_MS = 5000

export class Connection {
  readonly #listener: ConnectionListener
  #attempt: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #pauseMs = FIRST_PAUSE_MS
  /** Why the connection was lost, until it is back. */
  #lost: string | undefined

  constructor(listener: ConnectionListener) {
    this.#listener = listener
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#hide() : this.connect()))
  }

  /** Connects at once, replacing the current attempt or connection. */
  connect(): void {
    this.#end()
    if (document.hidden) return
    const attempt = new AbortController()
    this.#attempt = attempt
    this.#listener.standing(
      this.#lost === undefined
        ? { state: 'connecting' }
        : { state: 'lost', reason: this.#lost, retryAt: undefined },
    )
    this.#read(attempt).catch(error => {
      if (this.#attempt === attempt) this.#lose(error)
    })
  }

  #hide(): void {
    this.#end()
    this.#listener.standing({ state: 'hidden' })
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#attempt?.abort()
    this.#attempt = undefined
  }

  async #read(attempt: AbortController): Promise<void> {
    this.#watch(attempt)
    const { body } = await ask('/live/events', { signal: attempt.signal })
    if (body === null) throw new Error('The answer has no body.')
    for await (const event of readEvents(body)) {
      this.#watch(attempt)
      if (event?.event !== 'live') continue
      this.#pauseMs = FIRST_PAUSE_MS
      this.#lost = undefined
      this.#listener.standing({ state: 'live' })
      this.#listener.snapshot(JSON.parse(event.data))
    }
    throw new RefusedCall(0, 'The gateway ended the stream.')
  }

  /** Restarts the silence timer. */
  #watch(attempt: AbortController): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => attempt.abort(new Error('silence')), SILENCE_MS)
  }

  #lose(error: unknown): void {
    this.#end()
    if (error instanceof RefusedCall && [401, 429].includes(error.status)) {
      this.#listener.standing({ state: 'key', status: error.status, reason: error.message })
      return
    }
    // Randomized, so that many pages do not reconnect at the same moment.
    const pause = this.#pauseMs * (0.5 + Math.random() / 2)
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS)
    this.#lost = sentence(error)
    this.#listener.standing({ state: 'lost', reason: this.#lost, retryAt: Date.now() + pause })
    this.#timer = setTimeout(() => this.connect(), pause)
  }
}
