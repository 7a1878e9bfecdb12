/**
 * Wraps every call to Redis, which may be away: a hard deadline limits how long a request waits, and a breaker for each
 * node makes a dead one cost nothing, while keys of other nodes are still counted.
 */
import { isReportOnlyKey } from '../key.js'
import { Breaker, type BreakerOptions, type StoreOp } from './breaker.js'
import { CallDeadlines } from './call-deadlines.js'

export interface GuardOptions extends Pick<BreakerOptions, 'ping' | 'onFailure' | 'onCalled'> {
  readonly deadlineMs: number
  /** The node that keeps a key; '' where there is only one. */
  nodeOf(key: string): string
  /** Called when a node's breaker opens, and when the node is back. */
  onChange(change: NodeChange): void
}

export interface NodeChange {
  readonly node: string
  readonly away: boolean
  readonly anyAway: boolean
}

/** Checked before any request has named a key. Its hash tag makes the probe go to its own Cluster slot. */
const ANY_KEY = '{any}'

export class Guard {
  readonly #options: GuardOptions
  readonly #deadlines: CallDeadlines
  /** By node, each with a key that the node keeps. */
  readonly #breakers = new Map<string, { readonly breaker: Breaker; readonly key: string }>()
  readonly #away = new Set<string>()

  constructor(options: GuardOptions) {
    this.#options = options
    this.#deadlines = new CallDeadlines(options.deadlineMs)
  }

  /** True while the key's node is away: then only the guard itself calls it. */
  isAway(key: string): boolean {
    return this.#away.size > 0 && this.#away.has(this.#options.nodeOf(key))
  }

  /**
   * The result of one call about `key`, or undefined if its node is away, the call failed, or it took longer than the
   * deadline: a late result goes to `late`. Never rejects. Calls for report-only rules alone obey the breaker but do
   * not feed it: such rules must not affect enforced ones.
   */
  within<T>(
    op: StoreOp,
    key: string,
    call: () => Promise<T>,
    late?: (result: T) => void,
  ): Promise<T | undefined> {
    return this.#breaker(key).within(op, key, call, late, !isReportOnlyKey(key))
  }

  /** A connection was closed, or could not be opened: checks the nodes, even if no request calls them. */
  suspect(): void {
    if (this.#breakers.size === 0) this.#breaker(ANY_KEY)
    // A key may have moved to another node, or its node was unknown when its breaker was made.
    for (const { key } of this.#breakers.values()) this.#breaker(key).suspect(key)
  }

  close(): void {
    for (const { breaker } of this.#breakers.values()) breaker.close()
  }

  #breaker(key: string): Breaker {
    const node = this.#options.nodeOf(key)
    const known = this.#breakers.get(node)
    if (known !== undefined) return known.breaker
    const breaker = new Breaker({
      ...this.#options,
      deadlines: this.#deadlines,
      onChange: away => this.#changed(node, away),
    })
    this.#breakers.set(node, { breaker, key })
    return breaker
  }

  #changed(node: string, away: boolean): void {
    if (away) this.#away.add(node)
    else this.#away.delete(node)
    this.#options.onChange({ node, away, anyAway: this.#away.size > 0 })
  }
}
