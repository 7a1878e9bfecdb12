import type { Socket } from 'node:net'
import type { Deadlines, Timed } from './deadlines.js'

const NEVER = Number.POSITIVE_INFINITY

/** The connection whose client must read. */
export interface LimitedReader {
  /** The client has neither read nor sent anything in time. */
  onReaderGone(): void
  /** The client keeps sending but has read nothing in time; called at every check while that lasts. */
  onReaderStalled(): void
}

/**
 * A time limit for a client that does not read its response. The timeout of the socket finds a client that does nothing
 * at all. One that keeps sending resets that timeout with each byte, so it is looked for separately.
 */
export class ReaderLimit implements Timed {
  deadline = NEVER
  readonly #socket: Socket
  readonly #deadlines: Deadlines
  readonly #client: LimitedReader
  #ms = 0
  #isWatched = false
  /** `bytesRead` and `writableLength` of the socket at the last check. */
  #read = 0
  #waiting = 0

  constructor(socket: Socket, deadlines: Deadlines, client: LimitedReader) {
    this.#socket = socket
    this.#deadlines = deadlines
    this.#client = client
    socket.on('timeout', this.#onTimeout)
  }

  get isSet(): boolean {
    return this.#ms > 0
  }

  /** From now on the client must read something every `ms` milliseconds; 0 for no limit. */
  set(ms: number): void {
    this.#ms = ms
    // The timeout does not fire while the client reads, however slowly.
    this.#socket.setTimeout(ms)
    if (ms > 0 && !this.#isWatched) {
      this.#isWatched = true
      this.#deadlines.add(this)
    }
    this.#look()
  }

  onDeadline(): void {
    const { bytesRead, writableLength } = this.#socket
    const isStalled = bytesRead > this.#read && writableLength > 0 && writableLength >= this.#waiting
    this.#look()
    if (isStalled) this.#client.onReaderStalled()
  }

  /** Removes the limit for good. */
  close(): void {
    this.#socket.off('timeout', this.#onTimeout)
    this.#deadlines.delete(this)
  }

  readonly #onTimeout = (): void => {
    if (this.#socket.writableLength > 0) this.#client.onReaderGone()
  }

  #look(): void {
    this.#read = this.#socket.bytesRead
    this.#waiting = this.#socket.writableLength
    this.deadline = this.#ms === 0 ? NEVER : this.#deadlines.now() + this.#ms
  }
}
