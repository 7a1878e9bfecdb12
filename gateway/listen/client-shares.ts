/** The limit that was reached: the one of all clients together, or the one of this client. */
export type Cap = 'all' | 'client'

/** Something of which there is only so much, such as connections: for all clients together, and for each of them. */
export class Shares {
  readonly #mostOfAll: number
  readonly #mostOfOne: number
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(mostOfAll: number, mostOfOne: number) {
    this.#mostOfAll = mostOfAll
    this.#mostOfOne = mostOfOne
  }

  /** Taken by all. */
  get taken(): number {
    return this.#taken
  }

  /** The limit that `amount` more would exceed. `client` is undefined for a trusted proxy, which carries many. */
  capOf(client: string | undefined, amount = 1): Cap | undefined {
    if (client !== undefined && this.#of(client) + amount > this.#mostOfOne) return 'client'
    return this.#taken + amount > this.#mostOfAll ? 'all' : undefined
  }

  take(client: string | undefined, amount = 1): void {
    this.#taken += amount
    if (client !== undefined) this.#byClient.set(client, this.#of(client) + amount)
  }

  giveBack(client: string | undefined, amount = 1): void {
    this.#taken -= amount
    if (client === undefined) return
    const left = this.#of(client) - amount
    if (left > 0) this.#byClient.set(client, left)
    else this.#byClient.delete(client)
  }

  #of(client: string): number {
    return this.#byClient.get(client) ?? 0
  }
}
