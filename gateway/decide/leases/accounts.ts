/** The leases of this process: by key, and in the order in which they end. */
import type { Answer, Ask } from '../store/store.js'
import { Lease } from './lease.js'
import { leaseMs, type Windows } from './lease-client.js'

export interface Waiter {
  readonly ask: Ask
  /** Called with undefined if Redis is away and lends nothing. */
  resolve(answer: Answer | undefined): void
}

export interface Account {
  readonly lease: Lease
  waiting: Waiter[]
  /** The call to the store, if there is one. */
  underWay: Promise<void> | undefined
  calls: number
}

export class Accounts implements Iterable<Account> {
  readonly #all = new Map<string, Account>()
  /** Those that called Redis, by the length of their leases, each in the order of the last call. */
  readonly #queues = new Map<number, Set<Account>>()

  /** Undefined if nothing was ever asked of the key, or its lease has ended. */
  find(key: string): Account | undefined {
    return this.#all.get(key)
  }

  /** The account of an ask's key; made when there is none. */
  of({ key, demand }: Ask): Account {
    let account = this.#all.get(key)
    if (account === undefined) {
      account = { lease: new Lease(key, demand as Windows), waiting: [], underWay: undefined, calls: 0 }
      this.#all.set(key, account)
    }
    return account
  }

  /** Called before each call to Redis, since its demand may differ from that of the call before. */
  putLast(account: Account, demand: Windows): void {
    this.#queueOf(account.lease.demand).delete(account)
    this.#queueOf(demand).add(account)
  }

  delete(account: Account): void {
    this.#all.delete(account.lease.key)
    this.#queueOf(account.lease.demand).delete(account)
  }

  /** The accounts whose leases are due by `now`; the others are not visited. They may be moved or deleted meanwhile. */
  *due(now: number): Generator<Account> {
    for (const queue of this.#queues.values()) {
      for (const account of queue) {
        if (!account.lease.isDue(now)) break
        yield account
      }
    }
  }

  [Symbol.iterator](): Iterator<Account> {
    return this.#all.values()
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
