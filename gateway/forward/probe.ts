/** Whether an address can be connected to: asked while no request finds out. */
import type { OutgoingRequest, RequestPool, ResponseHandler } from '../outgoing-request.js'

/** Opens a connection from `pool` and gives it up again; `done` gets the error if there is none. */
export function probe(pool: RequestPool, done: (error: Error | undefined) => void): void {
  pool.takeNew(new Probe(done))
}

class Probe implements ResponseHandler {
  readonly #done: (error: Error | undefined) => void

  constructor(done: (error: Error | undefined) => void) {
    this.#done = done
  }

  onConnection(connection: OutgoingRequest): void {
    connection.release()
    // Whoever waits for it may close the pool, which is giving places out just now.
    process.nextTick(() => this.#done(undefined))
  }

  onFault(_fault: unknown, error: Error): void {
    this.#done(error)
  }

  onCrash(error: Error): void {
    this.#done(error)
  }

  // No request is sent, so there is no response.
  onSendable(): void {}
  onInterim(): void {}
  onHead(): void {}
  onData(): void {}
  onReadEnd(): void {}
  onEnd(): void {}
}
