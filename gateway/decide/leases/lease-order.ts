/** Leases in the order in which they end, so that finding those that are due does not visit the others. */
import type { Lease } from './lease.js'
import { leaseMs, type Windows } from './lease-client.js'

export class LeaseOrder<Account extends { readonly lease: Lease }> {
  /** By the length of their leases, each in the order of the last call. */
  readonly #queues = new Map<number, Set<Account>>()

  /** Called before each call to Redis, since its demand may differ from that of the call before. */
  putLast(account: Account, demand: Windows): void {
    this.delete(account)
    this.#queueOf(demand).add(account)
  }

  delete(account: Account): void {
    this.#queueOf(account.lease.demand).delete(account)
  }

  /** The accounts whose leases are due by `now`. They may be moved or deleted during the iteration. */
  *due(now: number): Generator<Account> {
    for (const queue of this.#queues.values()) {
      for (const account of queue) {
        if (!account.lease.isDue(now)) break
        yield account
      }
    }
  }

  #queueOf(demand: Windows): Set<Account> {
    const ms = leaseMs(demand)
    let queue = this.#queues.get(ms)
    if (queue === undefined) {
      queue = new Set()
      this.#queues.set(ms, queue)
    }
    return queue
  }
}
