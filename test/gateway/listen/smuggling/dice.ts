/** Reproducible randomness: the same seed gives the same numbers (mulberry32). */
export interface Dice {
  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number
  pick<T>(from: readonly T[]): T
  /** True once in `n` times on average. */
  oneIn(n: number): boolean
}

export function diceOf(seed: number): Dice {
  let state = seed >>> 0
  const below = (bound: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
  return {
    below,
    pick: from => from[below(from.length)] as (typeof from)[number],
    oneIn: n => below(n) === 0,
  }
}
