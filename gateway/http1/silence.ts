/** Connections on which an upstream may, by a fault of its own, send a body behind a response that has none. */

/** How long such a connection must be silent before it is free. */
export const SILENCE_MS = 500
/** Most connections that are waited for. For another one, the longest silent one is free earlier. */
const MOST = 512

export class Silence<Connection> {
  /** What to call when the connection is free; the longest silent one comes first. */
  readonly #silent = new Map<Connection, () => void>()
  /** The upstream has been caught, so no connection is free earlier, and none after any response without a body. */
  isFaulty = false

  /** Begins to wait. False if the connection must be closed instead. */
  begin(connection: Connection, onFree: () => void): boolean {
    if (this.#silent.size >= MOST) {
      if (this.isFaulty) return false
      const [longest] = this.#silent.keys()
      if (longest !== undefined) this.end(longest)
    }
    this.#silent.set(connection, onFree)
    return true
  }

  /** The connection has been silent for long enough; false if it was not waited for. */
  end(connection: Connection): boolean {
    const onFree = this.#silent.get(connection)
    this.#silent.delete(connection)
    onFree?.()
    return onFree !== undefined
  }

  /** The connection is closed. */
  delete(connection: Connection): void {
    this.#silent.delete(connection)
  }
}
