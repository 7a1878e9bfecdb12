/** The windows of many keys in this process, small and bounded. */
import type { Window } from '../../types.js'
import { type Epoch, type Spent, tokens } from './algorithm.js'
import { algorithmOf, lifetimeMs } from './algorithms.js'

/**
 * Most keys are asked once and never again: while a key has spent one token in each of its windows, the time of that token
 * is all there is to know.
 */
type Kept = number | Spent[]

/** Under a flood of distinct keys the oldest are forgotten early: memory stays bounded, their quotas begin anew. */
const MOST_KEYS = 250_000

const LITTLE = 8

/** Keys whose windows are longer than this are kept apart: what is soon forgotten must not wait for them, or push them out. */
const SHORT_MS = 3_600_000

export class WindowStates {
  readonly #epoch: Epoch
  readonly #short = new Generations()
  readonly #long = new Generations()

  constructor(epoch: Epoch) {
    this.#epoch = epoch
  }

  /** One list per window, as of `now`. Changes to them count once they are written; who only looks gets copies. */
  read(key: string, windows: readonly Window[], now: number, looks = false): Spent[] {
    const lifetime = lifetimeMs(windows)
    const own = lifetime > SHORT_MS ? this.#long : this.#short
    if (!looks) own.turn(lifetime, now)
    // An edit of its windows may have moved the key.
    const kept = own.get(key) ?? (own === this.#long ? this.#short : this.#long).get(key)
    const lists = typeof kept === 'object' && kept.length === windows.length ? kept : listsOf(kept, windows)
    return settled(looks ? lists.map(spent => [...spent]) : lists, windows, now, this.#epoch)
  }

  write(key: string, windows: readonly Window[], state: Spent[]): void {
    for (let i = 0; i < state.length; i += 1) state[i] = trimmed(state[i] as Spent)
    const own = lifetimeMs(windows) > SHORT_MS ? this.#long : this.#short
    own.set(key, onlyToken(state) ?? state)
  }

  delete(key: string): void {
    this.#short.delete(key)
    this.#long.delete(key)
  }

  clear(): void {
    this.#short.clear()
    this.#long.clear()
  }
}

/**
 * Keys live in two generations. A key that spends moves to the young one; at each turn the old one is dropped whole, so
 * keys that nobody uses cost nothing to forget.
 */
class Generations {
  #young = new Map<string, Kept>()
  #old = new Map<string, Kept>()
  #turnAt = 0
  #lifetimeMs = 0

  get(key: string): Kept | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: string, kept: Kept): void {
    this.#young.set(key, kept)
    if (this.#young.size >= MOST_KEYS) this.#turnAt = Number.NEGATIVE_INFINITY
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }

  turn(lifetime: number, now: number): void {
    if (lifetime > this.#lifetimeMs) {
      this.#lifetimeMs = lifetime
      this.#turnAt = now + lifetime
    }
    if (now < this.#turnAt) return
    this.#old = this.#young
    this.#young = new Map()
    this.#turnAt = now + this.#lifetimeMs
  }
}

function listsOf(kept: Kept | undefined, windows: readonly Window[]): Spent[] {
  return windows.map((_, i) => (typeof kept === 'number' ? [kept, 1] : (kept?.[i] ?? [])))
}

/** `lists` as of `now`. */
function settled(lists: Spent[], windows: readonly Window[], now: number, epoch: Epoch): Spent[] {
  for (let i = 0; i < windows.length; i += 1) {
    const window = windows[i] as Window
    algorithmOf(window).settle(lists[i] as Spent, window, now, epoch)
  }
  return lists
}

/** Growing leaves room for more behind a list: many times what it holds while that is little. */
function trimmed(spent: Spent): Spent {
  return spent.length <= LITTLE ? spent.slice() : spent
}

/** The time of the one token that each window holds, or undefined when there is more to know. */
function onlyToken(state: readonly Spent[]): number | undefined {
  const at = state[0]?.[0]
  for (const spent of state)
    if (spent.length !== 2 || spent[0] !== at || tokens(spent) !== 1) return undefined
  return at
}
