/** A map of counters whose memory is bounded, with a share of it for each rule. */
import { ruleOfKey } from '../key.js'

interface Entry<Value> {
  readonly key: string
  readonly value: Value
  readonly list: List<Value>
  older: Entry<Value> | undefined
  newer: Entry<Value> | undefined
}

/** Entries in the order in which they were set. */
// The order is a linked list, not a map's own: to find the oldest entry there, a new iterator would have to skip the
// places of all deleted entries, and a lasting one would keep alive every table that the map has outgrown.
class List<Value> {
  readonly share: Share<Value>
  size = 0
  oldest: Entry<Value> | undefined
  #newest: Entry<Value> | undefined

  constructor(share: Share<Value>) {
    this.share = share
  }

  add(key: string, value: Value): Entry<Value> {
    const entry: Entry<Value> = { key, value, list: this, older: this.#newest, newer: undefined }
    if (this.#newest === undefined) this.oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
    this.size += 1
    return entry
  }

  remove({ older, newer }: Entry<Value>): void {
    if (older === undefined) this.oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    this.size -= 1
  }
}

/** How much a key has used up: within a rule, each kind makes room for its own. */
export type Use = 'little' | 'most' | 'blocked'

/** Whether most of a quota is used up. */
export function useOf(used: number, quota: number): Use {
  return used * 2 > quota ? 'most' : 'little'
}

/** The entries of one rule. */
class Share<Value> {
  readonly rule: string
  readonly little = new List<Value>(this)
  readonly most = new List<Value>(this)
  readonly blocked = new List<Value>(this)

  constructor(rule: string) {
    this.rule = rule
  }

  get size(): number {
    return this.little.size + this.most.size + this.blocked.size
  }

  /** What is forgotten first: the oldest of the most numerous, so a flood of new keys pushes out no used-up one. */
  get first(): Entry<Value> | undefined {
    let list = this.little
    if (this.most.size > list.size) list = this.most
    if (this.blocked.size > list.size) list = this.blocked
    return list.oldest
  }
}

/**
 * A map from counter keys that forgets what was set longest ago: its memory stays bounded under a flood of keys. Each
 * rule may use an equal share of it, and what others leave free; only what is above its share is ever taken from it. Of
 * a rule, keys of which most is used up are forgotten last: a sender gets no new quota by inventing keys.
 */
export class BoundedMap<Value> {
  readonly #most: number
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #byRule = new Map<string, Share<Value>>()
  /** The same shares, in a ring: `#at` is where to look next for one that is too large. */
  readonly #shares: Share<Value>[] = []
  #at = 0
  /** The share whose oldest entries are looked at next by `forgetWhile`. */
  #next = 0

  /** @param most greatest number of entries */
  constructor(most: number) {
    this.#most = most
  }

  /** All values, in no order that matters. */
  *values(): Generator<Value> {
    for (const { value } of this.#entries.values()) yield value
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /**
   * Sets `key` as the newest entry, and returns the key that had to be forgotten for it.
   *
   * @param use of its quota
   */
  set(key: string, value: Value, use: Use = 'little'): string | undefined {
    const known = this.#entries.get(key)
    known?.list.remove(known)
    const share = known?.list.share ?? this.#shareOf(key)
    this.#entries.set(key, share[use].add(key, value))
    if (this.#entries.size <= this.#most) return undefined
    const forgotten = this.#tooLarge(share).first?.key
    if (forgotten !== undefined) this.delete(forgotten)
    return forgotten
  }

  /**
   * Forgets the oldest entries of a rule while they are over, at most `most` of each use. The next call looks at another
   * rule.
   */
  forgetWhile(isOver: (value: Value) => boolean, most: number): void {
    const share = this.#shares[this.#next % this.#shares.length]
    this.#next = (this.#next + 1) % Math.max(1, this.#shares.length)
    if (share === undefined) return
    for (const list of [share.little, share.most, share.blocked]) {
      for (let left = most; left > 0 && list.oldest !== undefined; left -= 1) {
        if (!isOver(list.oldest.value)) break
        this.delete(list.oldest.key)
      }
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    entry.list.remove(entry)
    const { share } = entry.list
    if (share.size > 0) return
    this.#byRule.delete(share.rule)
    this.#shares.splice(this.#shares.indexOf(share), 1)
  }

  #shareOf(key: string): Share<Value> {
    const rule = ruleOfKey(key)
    let share = this.#byRule.get(rule)
    if (share === undefined) {
      share = new Share(rule)
      this.#byRule.set(rule, share)
      this.#shares.push(share)
    }
    return share
  }

  /**
   * A share above the average, the growing one if it is: then a flood costs its own rule. Otherwise shares are looked
   * at in turn, and one that was found stays the next to be asked, so that few are looked at for each key.
   */
  #tooLarge(growing: Share<Value>): Share<Value> {
    const average = this.#most / this.#shares.length
    if (growing.size > average) return growing
    for (let tries = 0; tries < this.#shares.length; tries += 1) {
      this.#at %= this.#shares.length
      const share = this.#shares[this.#at] as Share<Value>
      if (share.size > average) return share
      this.#at += 1
    }
    return growing
  }
}
