/** The places for requests at one backend: who gets one, who waits, and who gives way when others wait. */

/** Most requests that may wait for a place. */
const WAITING = 1024

/** A request that has a place, or waits for one. */
export interface Occupant {
  /** The client it is counted for: an IPv4 address or IPv6 network. */
  readonly client: string
  /** Since when it waits for its client to send or read, in ms of `performance.now()`; undefined while it does not. */
  readonly waitsSince: number | undefined
  /** Index of its place; undefined while it has none. Set by Places. */
  place?: number | undefined
  /** It has been given a place. */
  go(): void
  /** It must leave its place, or the queue, to another client's request; it leaves before this returns. */
  giveWay(): void
}

/**
 * No client holds more than three quarters of the places, so one alone never keeps others out. Clients that wait take
 * turns, the one with the fewest places first. If several clients have filled the places together, one that holds more
 * than a sixteenth loses a request that waits for its client.
 */
export class BackendQueue {
  readonly #most: number
  readonly #mostOfOne: number
  readonly #share: number
  /** An array: a Set of short-lived requests keeps those of its former tables alive from one scavenge to the next. */
  readonly #held: Occupant[] = []
  /** Places by client. */
  readonly #counts = new Map<string, number>()
  /** Waiting requests by client. The first client is served first among those with equally many places. */
  readonly #queues = new Map<string, Set<Occupant>>()
  #waiting = 0

  constructor(most: number) {
    this.#most = most
    this.#mostOfOne = Math.max(1, Math.floor((most * 3) / 4))
    this.#share = Math.max(1, Math.floor(most / 16))
  }

  /** Requests with a place or in the queue. */
  get size(): number {
    return this.#held.length + this.#waiting
  }

  /** Takes a place: at once ('admitted'), or later ('waiting', then `go`). 'full' if the queue has no room either. */
  enter(one: Occupant): 'admitted' | 'waiting' | 'full' {
    if (this.#held.length < this.#most && this.#placesOf(one.client) < this.#mostOfOne) {
      this.#hold(one)
      return 'admitted'
    }
    if (this.#waiting >= WAITING && !this.#shortenQueue(one.client)) return 'full'
    this.#queue(one)
    if (this.#held.length >= this.#most) this.#evict(one.client)
    return 'waiting'
  }

  /** Leaves the queue; false if the request was not waiting. */
  stopWaiting(one: Occupant): boolean {
    const queue = this.#queues.get(one.client)
    if (!queue?.delete(one)) return false
    this.#waiting -= 1
    if (queue.size === 0) this.#queues.delete(one.client)
    return true
  }

  /** Gives a place back, or passes it on. */
  leave(one: Occupant): void {
    const { place } = one
    if (place === undefined) return
    one.place = undefined
    const last = this.#held.pop()
    if (last !== undefined && last !== one) {
      this.#held[place] = last
      last.place = place
    }
    const left = this.#placesOf(one.client) - 1
    if (left > 0) this.#counts.set(one.client, left)
    else this.#counts.delete(one.client)
    const next = this.#waiting === 0 ? undefined : this.#next()
    if (next === undefined) return
    this.#hold(next)
    // Asynchronous, because many waiting requests that fail at once would overflow the stack.
    process.nextTick(() => next.go())
  }

  #placesOf(client: string): number {
    return this.#counts.get(client) ?? 0
  }

  #hold(one: Occupant): void {
    one.place = this.#held.push(one) - 1
    this.#counts.set(one.client, this.#placesOf(one.client) + 1)
  }

  #queue(one: Occupant): void {
    const queue = this.#queues.get(one.client)
    if (queue === undefined) this.#queues.set(one.client, new Set([one]))
    else queue.add(one)
    this.#waiting += 1
  }

  /** Takes the request that is served next out of the queue. */
  #next(): Occupant | undefined {
    let fewest = this.#mostOfOne
    let client: string | undefined
    for (const one of this.#queues.keys()) {
      const places = this.#placesOf(one)
      if (places >= fewest) continue
      fewest = places
      client = one
      if (places === 0) break
    }
    const queue = client === undefined ? undefined : this.#queues.get(client)
    if (client === undefined || queue === undefined) return undefined
    const [next] = queue
    this.stopWaiting(next as Occupant)
    // The client's other requests wait for its next turn.
    if (queue.size > 0) {
      this.#queues.delete(client)
      this.#queues.set(client, queue)
    }
    return next
  }

  /**
   * Removes the newest waiting request of the client that has the most requests here, with or without a place, unless that
   * is `client` or it has hardly more.
   */
  #shortenQueue(client: string): boolean {
    let most = this.#placesOf(client) + (this.#queues.get(client)?.size ?? 0)
    let queue: Set<Occupant> | undefined
    for (const [other, waiting] of this.#queues) {
      const requests = this.#placesOf(other) + waiting.size
      if (requests <= most + 1) continue
      most = requests
      queue = waiting
    }
    const newest = queue === undefined ? undefined : [...queue].at(-1)
    newest?.giveWay()
    return newest !== undefined
  }

  /** Of the clients that hold much, ends the request that has waited longest for its client. */
  #evict(client: string): void {
    if (this.#placesOf(client) >= this.#share) return
    let slowest: Occupant | undefined
    let since = Number.POSITIVE_INFINITY
    for (const one of this.#held) {
      const { waitsSince } = one
      if (waitsSince === undefined || waitsSince >= since || this.#placesOf(one.client) <= this.#share)
        continue
      since = waitsSince
      slowest = one
    }
    slowest?.giveWay()
  }
}
