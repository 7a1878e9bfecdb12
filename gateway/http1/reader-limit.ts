import type { Socket } from 'node:net'
import type { Deadlines, Timed } from './deadlines.js'

const NEVER = Number.POSITIVE_INFINITY

/**
 * Detects a client that reads nothing of its response but keeps sending: each byte sent resets the idle timeout of the
 * socket, which would then never fire.
 */
export class ReaderLimit implements Timed {
  deadline = NEVER
  readonly #socket: Socket
  readonly #deadlines: Deadlines
  readonly #onStall: () => void
  #ms = 0
  /** `bytesRead` and `writableLength` of the socket at the last check. */
  #read = 0
  #waiting = 0

  /** Calls `onStall` at every check while the client is stalled. */
  constructor(socket: Socket, deadlines: Deadlines, onStall: () => void) {
    this.#socket = socket
    this.#deadlines = deadlines
    this.#onStall = onStall
    deadlines.add(this)
  }

  /** From now on the client must read something every `ms` milliseconds; 0 for no limit. */
  set(ms: number): void {
    this.#ms = ms
    this.#look()
  }

  onDeadline(): void {
    const { bytesRead, writableLength } = this.#socket
    const isStalled = bytesRead > this.#read && writableLength > 0 && writableLength >= this.#waiting
    this.#look()
    if (isStalled) this.#onStall()
  }

  close(): void {
    this.#deadlines.delete(this)
  }

  #look(): void {
    this.#read = this.#socket.bytesRead
    this.#waiting = this.#socket.writableLength
    this.deadline = this.#ms === 0 ? NEVER : this.#deadlines.now() + this.#ms
  }
}
