/** How much memory request bodies may take. */

/** Of all bodies together, of both services when they run in one process. */
const ALL_BYTES = 32 * 1024 * 1024
/** Of the bodies of one client, so that it leaves room for others. */
const CLIENT_BYTES = ALL_BYTES / 4

/** Bytes that are free, in all and for each client. */
export class Budget {
  readonly #most: number
  readonly #mostOfOne: number
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(most = ALL_BYTES, mostOfOne = CLIENT_BYTES) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  /** Takes bytes for a client; false, and nothing is taken, when they are not free. */
  take(client: string, bytes: number): boolean {
    const taken = this.#byClient.get(client) ?? 0
    if (this.#taken + bytes > this.#most || taken + bytes > this.#mostOfOne) return false
    this.#taken += bytes
    this.#byClient.set(client, taken + bytes)
    return true
  }

  giveBack(client: string, bytes: number): void {
    if (bytes === 0) return
    this.#taken -= bytes
    const left = (this.#byClient.get(client) ?? 0) - bytes
    if (left > 0) this.#byClient.set(client, left)
    else this.#byClient.delete(client)
  }
}
