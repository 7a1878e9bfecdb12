/** The windows of many keys in this process, in little, bounded memory. */
import type { Window } from '../../types.js'
import { type Epoch, type Spent, tokens } from './algorithm.js'
import { algorithmOf, lifetimeMs } from './algorithms.js'

/**
 * Most keys are used once and never again: as long as a key has spent one token in each of its windows, only that
 * token's time is kept.
 */
type Kept = number | Spent[]

/** Under a flood of distinct keys the oldest are forgotten early: memory stays bounded, their quotas start again. */
const MOST_KEYS = 250_000

const LITTLE = 8

/** Keys with longer windows are kept apart, so that short-lived keys neither wait for them nor push them out. */
const SHORT_MS = 3_600_000

export class WindowStates {
  readonly #epoch: Epoch
  readonly #short = new Generations()
  readonly #long = new Generations()

  constructor(epoch: Epoch) {
    this.#epoch = epoch
  }

  /** One list per window, as of `now`. Changes to them take effect with `write`; with `looks`, the lists are copies. */
  read(key: string, windows: readonly Window[], now: number, looks = false): Spent[] {
    const lifetime = lifetimeMs(windows)
    const own = lifetime > SHORT_MS ? this.#long : this.#short
    if (!looks) own.turn(lifetime, now)
    let kept = own.get(key)
    if (kept === undefined) {
      const others = own === this.#long ? this.#short : this.#long
      kept = others.get(key)
      // After an edit of its windows the key moves: what stayed behind would count again after the next edit.
      if (kept !== undefined && !looks) {
        others.delete(key)
        own.set(key, kept)
      }
    }
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
 * Keys live in two generations. A key that spends moves to the young one; at each turn the old one is dropped as a
 * whole, so unused keys cost nothing to forget.
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

/** A copy: a list that grew has spare room, many times what a short list holds. */
function trimmed(spent: Spent): Spent {
  return spent.length <= LITTLE ? spent.slice() : spent
}

/** The time of the one token that each window holds; undefined if the state is anything else. */
function onlyToken(state: readonly Spent[]): number | undefined {
  const at = state[0]?.[0]
  for (const spent of state)
    if (spent.length !== 2 || spent[0] !== at || tokens(spent) !== 1) return undefined
  return at
}
