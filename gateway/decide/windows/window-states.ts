/** The windows of many keys in this process, in little, bounded memory. */
import type { Window } from '../../demand.js'
import { BoundedMap, type Use, useOf } from '../store/bounded-map.js'
import { lastOf, type Spent, tokens } from './algorithm.js'
import { algorithmOf, lastsMs, lifetimeMs } from './algorithms.js'
import type { WallClock } from './date-clock.js'
import { LIFETIME_MS } from './lifetime-window.js'

/** All that must be known of windows to keep what was spent in them, whatever policy lists them. */
type Shape = readonly Pick<Window, 'name' | 'ms'>[]

/**
 * What a key spent, under the windows of the policy that counted it last. Most keys are used once and never again: as
 * long as a key has spent one token in each of its windows, only that token's time is kept.
 */
interface Stored {
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
/** Windows of former policies that a key keeps, at most, besides lifetime windows. */
const MOST_OTHERS = 8

/** Beyond it keys are forgotten early, as `BoundedMap` says, and their quotas start again. */
const MOST_KEYS = 250_000

const LITTLE = 8

/** Keys with longer windows are kept apart, so that short-lived keys neither wait for them nor push them out. */
const SHORT_MS = 3_600_000

export class WindowStates {
  readonly #wallClock: WallClock
  #short = new States()
  #long = new States()
  /** Keys with lifetime windows, which are never over. */
  #lasting = new States()
  readonly #shapes = new Shapes()

  constructor(wallClock: WallClock) {
    this.#wallClock = wallClock
  }

  /**
   * One list per window, found by the window's name, as of `now`. Changes to them take effect with `write`; with
   * `looks`, the lists are copies.
   */
  read(key: string, windows: readonly Window[], now: number, looks = false): Spent[] {
    const kept = this.#get(key)
    const lifetime = lifetimeOf(windows, kept)
    if (!looks) this.#placeOf(lifetime).forgetOver(lifetime, now)
    if (kept === undefined) return windows.map(() => [])
    let lists: Spent[]
    if (isShape(kept.shape, windows)) lists = looks ? copied(listsOf(kept)) : listsOf(kept)
    else {
      const moved = under(this.#shapes.of(windows), kept, now)
      if (!looks) this.#set(key, moved, lifetime, windows)
      lists = moved.spent
    }
    for (let i = 0; i < windows.length; i += 1) {
      const window = windows[i] as Window
      algorithmOf(window).settle(lists[i] as Spent, window, now, this.#wallClock)
    }
    return lists
  }

  write(key: string, windows: readonly Window[], state: Spent[]): void {
    for (let i = 0; i < state.length; i += 1) state[i] = trimmed(state[i] as Spent)
    const before = this.#get(key)
    const shape =
      before !== undefined && isShape(before.shape, windows) ? before.shape : this.#shapes.of(windows)
    const kept = { shape, spent: onlyToken(state) ?? state, others: before?.others ?? NO_OTHERS }
    this.#set(key, kept, lifetimeOf(windows, before), windows)
  }

  #get(key: string): Stored | undefined {
    return this.#short.get(key) ?? this.#long.get(key) ?? this.#lasting.get(key)
  }

  /** A key has one place: what stayed behind in another would count again after the next edit. */
  #set(key: string, kept: Stored, lifetime: number, windows: readonly Window[]): void {
    const own = this.#placeOf(lifetime)
    for (const place of [this.#short, this.#long, this.#lasting]) if (place !== own) place.delete(key)
    own.set(key, kept, useIn(kept, windows))
  }

  #placeOf(lifetime: number): States {
    if (lifetime >= LIFETIME_MS) return this.#lasting
    return lifetime > SHORT_MS ? this.#long : this.#short
  }

  delete(key: string): void {
    this.#short.delete(key)
    this.#long.delete(key)
    this.#lasting.delete(key)
  }

  clear(): void {
    this.#short = new States()
    this.#long = new States()
    this.#lasting = new States()
  }
}

/** Most keys that are forgotten at once because their windows are over. */
const AT_ONCE = 64

/** Windows of similar length. */
class States extends BoundedMap<Stored> {
  #lifetimeMs = 0

  constructor() {
    super(MOST_KEYS)
  }

  /** Forgets keys that have not spent for longer than any window: a few with each call, so none takes long. */
  forgetOver(lifetime: number, now: number): void {
    this.#lifetimeMs = Math.max(this.#lifetimeMs, lifetime)
    const before = now - this.#lifetimeMs
    this.forgetWhile(kept => lastAt(kept) <= before, AT_ONCE)
  }
}

/** When a key spent last. */
function lastAt({ spent, others }: Stored): number {
  let last = typeof spent === 'number' ? spent : Number.NEGATIVE_INFINITY
  if (typeof spent !== 'number') for (const list of spent) last = Math.max(last, lastOf(list) ?? last)
  for (const other of others) last = Math.max(last, lastOf(other.spent) ?? last)
  return last
}

/** How much is used up of the window that has least left. */
function useIn({ spent }: Stored, windows: readonly Window[]): Use {
  for (let i = 0; i < windows.length; i += 1) {
    const count = typeof spent === 'number' ? 1 : tokens(spent[i] ?? [])
    if (useOf(count, (windows[i] as Window).quota) === 'most') return 'most'
  }
  return 'little'
}

/** Most shapes that are known at a time. */
const MOST_SHAPES = 1000

/**
 * One object per shape, since asks may bring windows of their own for each request. When there are too many, all are
 * forgotten: a shape that is known twice only costs memory.
 */
class Shapes {
  readonly #known = new Map<string, Shape>()
  #last: Shape = []

  of(windows: readonly Window[]): Shape {
    if (!isShape(this.#last, windows)) {
      const name = windows.map(({ name, ms }) => `${name} ${ms}`).join('\n')
      let shape = this.#known.get(name)
      if (shape === undefined) {
        if (this.#known.size >= MOST_SHAPES) this.#known.clear()
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
function under(shape: Shape, kept: Stored, now: number): Stored & { readonly spent: Spent[] } {
  const lists = copied(listsOf(kept))
  const all = [...kept.shape.map((window, i) => ({ window, spent: lists[i] as Spent })), ...kept.others]
  const spent = shape.map(({ name }) => [...(all.find(({ window }) => window.name === name)?.spent ?? [])])
  const others = all.filter(
    ({ window, spent }) =>
      !shape.some(({ name }) => name === window.name) && (lastOf(spent) ?? -Infinity) + lastsMs(window) > now,
  )
  const lasting = others.filter(({ window }) => isLifetimeLong(window))
  const ending = others.filter(({ window }) => !isLifetimeLong(window)).slice(0, MOST_OTHERS)
  return { shape, spent, others: [...lasting, ...ending] }
}

function listsOf({ shape, spent }: Stored): Spent[] {
  return typeof spent === 'number' ? shape.map(() => [spent, 1]) : spent
}

/** Spent for ever, not for a length of time. */
const isLifetimeLong = ({ ms }: Shape[number]): boolean => ms >= LIFETIME_MS

const copied = (lists: readonly Spent[]): Spent[] => lists.map(spent => [...spent])

/** How long a key must be kept: former windows may be longer than those it has now. */
function lifetimeOf(windows: Shape, kept: Stored | undefined): number {
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
