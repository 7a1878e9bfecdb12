import type { Socket } from 'node:net'

/** The connections on which no request is under way, each kind in the order it came to wait. */
export class WaitingConnections {
  /** They have yet to send the head of a first request. */
  readonly #fresh = new Set<Socket>()
  /** They wait for their next request. */
  readonly #idle = new Set<Socket>()

  opened(socket: Socket): void {
    this.#fresh.add(socket)
    socket.on('close', () => this.busy(socket))
  }

  /** A request's answer has its turn on it. */
  busy(socket: Socket): void {
    this.#fresh.delete(socket)
    this.#idle.delete(socket)
  }

  /** It has answered, and may be asked again. */
  idle(socket: Socket): void {
    if (!socket.destroyed) this.#idle.add(socket)
  }

  closeIdle(): void {
    for (const socket of this.#idle) socket.destroySoon()
  }

  /** Ends the one that is missed the least: that has waited longest. False when there is none. */
  closeLongest(): boolean {
    const [longest = firstOf(this.#fresh)] = this.#idle
    if (longest === undefined) return false
    this.busy(longest)
    longest.destroySoon()
    return true
  }
}

function firstOf<T>(set: ReadonlySet<T>): T | undefined {
  const [first] = set
  return first
}
