/** The windows of many keys in this process, in little, bounded memory. */
import type { Window } from '../../types.js'
import { type Epoch, lastOf, type Spent, tokens } from './algorithm.js'
import { algorithmOf, lastsMs, lifetimeMs } from './algorithms.js'

/** All that must be known of windows to keep what was spent in them, whatever policy lists them. */
type Shape = readonly Pick<Window, 'name' | 'ms'>[]

/**
 * What a key spent, under the windows of the policy that counted it last. Most keys are used once and never again: as
 * long as a key has spent one token in each of its windows, only that token's time is kept.
 */
interface Kept {
  readonly shape: Shape
  readonly spent: number | Spent[]
  /** Windows that only former policies of the key have, while they may count: their policy may come back. */
  readonly others: readonly Other[]
}

interface Other {
  readonly window: Shape[number]
  readonly spent: Spent
}

const NO_OTHERS: readonly Other[] = []
/** Windows of former policies that a key keeps, at most. */
const MOST_OTHERS = 8

/** Under a flood of distinct keys the oldest are forgotten early: memory stays bounded, their quotas start again. */
const MOST_KEYS = 250_000

const LITTLE = 8

/** Keys with longer windows are kept apart, so that short-lived keys neither wait for them nor push them out. */
const SHORT_MS = 3_600_000

export class WindowStates {
  readonly #epoch: Epoch
  readonly #short = new Generations()
  readonly #long = new Generations()
  readonly #shapes = new Shapes()

  constructor(epoch: Epoch) {
    this.#epoch = epoch
  }

  /**
   * One list per window, found by the window's name, as of `now`. Changes to them take effect with `write`; with
   * `looks`, the lists are copies.
   */
  read(key: string, windows: readonly Window[], now: number, looks = false): Spent[] {
    const kept = this.#get(key)
    const lifetime = lifetimeOf(windows, kept)
    if (!looks) (lifetime > SHORT_MS ? this.#long : this.#short).turn(lifetime, now)
    if (kept === undefined) return windows.map(() => [])
    let lists: Spent[]
    if (isShape(kept.shape, windows)) lists = looks ? copied(listsOf(kept)) : listsOf(kept)
    else {
      const moved = under(this.#shapes.of(windows), kept, now)
      if (!looks) this.#set(key, moved, lifetime)
      lists = moved.spent
    }
    for (let i = 0; i < windows.length; i += 1) {
      const window = windows[i] as Window
      algorithmOf(window).settle(lists[i] as Spent, window, now, this.#epoch)
    }
    return lists
  }

  write(key: string, windows: readonly Window[], state: Spent[]): void {
    for (let i = 0; i < state.length; i += 1) state[i] = trimmed(state[i] as Spent)
    const before = this.#get(key)
    const shape =
      before !== undefined && isShape(before.shape, windows) ? before.shape : this.#shapes.of(windows)
    const kept = { shape, spent: onlyToken(state) ?? state, others: before?.others ?? NO_OTHERS }
    this.#set(key, kept, lifetimeOf(windows, before))
  }

  #get(key: string): Kept | undefined {
    return this.#short.get(key) ?? this.#long.get(key)
  }

  /** A key has one place: what stayed behind in the other would count again after the next edit. */
  #set(key: string, kept: Kept, lifetime: number): void {
    const [own, other] = lifetime > SHORT_MS ? [this.#long, this.#short] : [this.#short, this.#long]
    other.delete(key)
    own.set(key, kept)
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

/** One object per shape: asks may bring windows of their own for each request. */
class Shapes {
  readonly #known = new Map<string, Shape>()
  #last: Shape = []

  of(windows: readonly Window[]): Shape {
    if (!isShape(this.#last, windows)) {
      const name = windows.map(({ name, ms }) => `${name} ${ms}`).join('\n')
      let shape = this.#known.get(name)
      if (shape === undefined) {
        shape = windows.map(({ name, ms }) => ({ name, ms }))
        this.#known.set(name, shape)
      }
      this.#last = shape
    }
    return this.#last
  }
}

function isShape(shape: Shape, windows: readonly Window[]): boolean {
  if (shape.length !== windows.length) return false
  for (let i = 0; i < shape.length; i += 1) {
    const [one, other] = [shape[i] as Shape[number], windows[i] as Window]
    if (one.name !== other.name || one.ms !== other.ms) return false
  }
  return true
}

/** The same counts under other windows, each by its name. */
function under(shape: Shape, kept: Kept, now: number): Kept & { readonly spent: Spent[] } {
  const lists = copied(listsOf(kept))
  const all = [...kept.shape.map((window, i) => ({ window, spent: lists[i] as Spent })), ...kept.others]
  const spent = shape.map(({ name }) => [...(all.find(({ window }) => window.name === name)?.spent ?? [])])
  const others = all.filter(
    ({ window, spent }) =>
      !shape.some(({ name }) => name === window.name) && (lastOf(spent) ?? -Infinity) + lastsMs(window) > now,
  )
  return { shape, spent, others: others.slice(0, MOST_OTHERS) }
}

function listsOf({ shape, spent }: Kept): Spent[] {
  return typeof spent === 'number' ? shape.map(() => [spent, 1]) : spent
}

const copied = (lists: readonly Spent[]): Spent[] => lists.map(spent => [...spent])

/** How long a key must be kept: former windows may be longer than those it has now. */
function lifetimeOf(windows: Shape, kept: Kept | undefined): number {
  let longest = lifetimeMs(windows)
  if (kept === undefined) return longest
  for (const { window } of kept.others) longest = Math.max(longest, lastsMs(window))
  for (const window of kept.shape) longest = Math.max(longest, lastsMs(window))
  return longest
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
