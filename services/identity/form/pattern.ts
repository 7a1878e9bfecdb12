/**
 * Regular expressions in time linear in the text, so that no schema `pattern` can be made to hang the process
 * (design section 10, rule 2). JavaScript's own engine backtracks; here a pattern becomes a set of states that
 * moves over the text once. The native engine is asked only whether one character fits one atom.
 */
import { type Element, parsePattern } from './pattern-syntax.js'

/** Most states a pattern may need after its counted repetitions are written out. */
const MAX_STATES = 2000
/** Remembered state sets; beyond this the memory starts afresh, time stays linear. */
const MAX_SETS = 500

interface State {
  /** Tests one character; undefined for a state that only leads on. */
  atom?: RegExp
  assertion?: 'start' | 'end'
  next: number[]
}

/** A set of states and where each character leads from it. */
interface StateSet {
  readonly states: readonly number[]
  readonly accepts: boolean
  readonly moves: Map<string, StateSet>
}

/** A compiled pattern with the `test` of a RegExp. Searches anywhere, as JSON Schema asks. */
export class LinearPattern {
  readonly #source: string
  readonly #states: State[] = []
  readonly #accept: number
  readonly #start: number
  #sets = new Map<string, StateSet>()

  /** Throws an Error with a sentence when the pattern is malformed, uses look-around or back references, or is too big. */
  constructor(source: string) {
    this.#source = source
    this.#accept = this.#add({ next: [] })
    this.#start = this.#build(parsePattern(source), this.#accept)
  }

  /** As of a RegExp: validators tell patterns apart by it. */
  toString(): string {
    return `/${this.#source}/u`
  }

  test(text: string): boolean {
    let set = this.#setOf([this.#start], true, text.length === 0)
    let left = text.length
    for (const character of text) {
      if (set.accepts) return true
      left -= character.length
      set = this.#move(set, character, left === 0)
    }
    return set.accepts
  }

  #add(state: State): number {
    if (this.#states.length >= MAX_STATES) throw new Error('repeats too much to be checked quickly')
    return this.#states.push(state) - 1
  }

  /** Builds backwards: returns the state from which `element` and then `next` must match. */
  #build(element: Element, next: number): number {
    switch (element.type) {
      case 'atom':
        return this.#add({ atom: element.test, next: [next] })
      case 'assertion':
        return this.#add({ assertion: element.at, next: [next] })
      case 'sequence':
        return element.parts.reduceRight((after, part) => this.#build(part, after), next)
      case 'choice':
        return this.#add({ next: element.options.map(option => this.#build(option, next)) })
      case 'repeat':
        return this.#repeat(element.part, element.min, element.max, next)
    }
  }

  #repeat(part: Element, min: number, max: number, next: number): number {
    let tail = next
    if (max === Number.POSITIVE_INFINITY) {
      tail = this.#add({ next: [next] })
      this.#states[tail]?.next.push(this.#build(part, tail))
    } else {
      for (let count = min; count < max; count++) tail = this.#add({ next: [this.#build(part, tail), next] })
    }
    for (let count = 0; count < min; count++) tail = this.#build(part, tail)
    return tail
  }

  /** The set reached from `seeds` without reading a character. */
  #setOf(seeds: readonly number[], atStart: boolean, atEnd: boolean): StateSet {
    const reached = new Set<number>()
    const pending = [...seeds]
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      if (reached.has(id)) continue
      const state = this.#states[id] as State
      if (state.assertion && !(state.assertion === 'start' ? atStart : atEnd)) continue
      reached.add(id)
      if (!state.atom) pending.push(...state.next)
    }
    const states = [...reached].filter(id => this.#states[id]?.atom).sort((a, b) => a - b)
    const accepts = reached.has(this.#accept)
    const key = `${accepts} ${states.join()}`
    let set = this.#sets.get(key)
    if (!set) {
      if (this.#sets.size >= MAX_SETS) this.#sets = new Map()
      set = { states, accepts, moves: new Map() }
      this.#sets.set(key, set)
    }
    return set
  }

  #move(set: StateSet, character: string, atEnd: boolean): StateSet {
    // Only short alphabets are worth remembering, and the last character may pass a `$`.
    const memorable = !atEnd && character < '\u0080'
    const known = memorable ? set.moves.get(character) : undefined
    if (known) return known
    const seeds = set.states.flatMap(id => {
      const state = this.#states[id] as State
      return state.atom?.test(character) ? state.next : []
    })
    const reached = this.#setOf([...seeds, this.#start], false, atEnd)
    if (memorable) set.moves.set(character, reached)
    return reached
  }
}
