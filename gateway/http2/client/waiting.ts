import type { Deadlines, Timed } from '../../http1/deadlines.js'
import { type ConnectionFault, type ResponseHandler, tell } from '../../outgoing-request.js'

/** No connection could be opened, or the upstream has ended it by GOAWAY before it carried a request. */
type WaitingFault = Extract<ConnectionFault, 'no-connection' | 'refused'>

/** Requests that wait for a connection with room, in the order in which they came, each for its `connectMs` at most. */
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
    const connectMs = handler.times?.connectMs ?? this.#connectMs
    const one: Waiting = {
      handler,
      needsNew,
      deadline: this.#deadlines.now() + connectMs,
      onDeadline: () => {
        this.#remove(one)
        fail(handler, 'no-connection', new Error(`no connection with room within ${connectMs} ms`))
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
  fail(fault: WaitingFault, error: Error): void {
    const all = [...this.#all]
    for (const one of all) this.#remove(one)
    for (const { handler } of all) fail(handler, fault, error)
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
export function fail(handler: ResponseHandler, fault: WaitingFault, error: Error): void {
  tell(
    handler,
    one => one.onFault(fault, error, false),
    () => {},
  )
}
