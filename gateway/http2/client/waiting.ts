import type { Deadlines, Timed } from '../../http1/deadlines.js'
import { type ResponseHandler, tell } from '../../outgoing-request.js'

/** Requests that wait for a connection with room, in the order in which they came, each for `connectMs` at most. */
export class WaitingRequests {
  readonly #deadlines: Deadlines
  readonly #connectMs: number
  readonly #all = new Set<Waiting>()

  constructor(deadlines: Deadlines, connectMs: number) {
    this.#deadlines = deadlines
    this.#connectMs = connectMs
  }

  get size(): number {
    return this.#all.size
  }

  /** @param needsNew only a connection that has just opened will do */
  add(handler: ResponseHandler, needsNew: boolean): void {
    const one: Waiting = {
      handler,
      needsNew,
      deadline: this.#deadlines.now() + this.#connectMs,
      onDeadline: () => {
        this.#remove(one)
        fail(handler, new Error(`no connection with room within ${this.#connectMs} ms`))
      },
    }
    this.#all.add(one)
    this.#deadlines.add(one)
  }

  /** Takes out the first request that may go on a connection, which has just opened if `isNew`. */
  take(isNew: boolean): ResponseHandler | undefined {
    for (const one of this.#all) {
      if (one.needsNew && !isNew) continue
      this.#remove(one)
      return one.handler
    }
    return undefined
  }

  /** There will be no connection for those who wait. */
  fail(error: Error): void {
    const all = [...this.#all]
    for (const one of all) this.#remove(one)
    for (const { handler } of all) fail(handler, error)
  }

  #remove(one: Waiting): void {
    this.#all.delete(one)
    this.#deadlines.delete(one)
  }
}

interface Waiting extends Timed {
  readonly handler: ResponseHandler
  readonly needsNew: boolean
}

/** Tells a request that there is no connection for it. */
export function fail(handler: ResponseHandler, error: Error): void {
  tell(
    handler,
    one => one.onFault('no-connection', error, false),
    () => {},
  )
}
