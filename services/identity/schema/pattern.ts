/**
 * Regular expressions in time linear in the text, so that no schema `pattern` can make the process hang
 * (docs/forms.md). JavaScript's own engine backtracks; here a pattern becomes a set of states that moves over the text
 * once. The native engine only checks whether one character matches one atom.
 */
import { type Element, parsePattern } from './pattern-syntax.js'

/** In steps; a few hundred milliseconds. An ordinary pattern takes few steps for a megabyte. */
const MOST_STEPS = 3_000_000

/** Thrown when a document would keep the patterns busy for too long. */
export class TooMuchEffort extends Error {}

/** The remaining work for one document. */
export class Effort {
  #left = MOST_STEPS

  /** Starts a new document. */
  renew(): void {
    this.#left = MOST_STEPS
  }

  /** Throws TooMuchEffort. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new TooMuchEffort()
  }
}

/** Most states a pattern may need after its counted repetitions are expanded. */
const MAX_STATES = 4000
/** Most states in cached sets, and most cached characters; beyond this the cache is cleared. */
const MAX_REMEMBERED = 200_000
const MAX_CHARACTERS = 10_000

interface State {
  /** Number of the atom that one character has to match; undefined for a state that only leads to others. */
  atom?: number
  assertion?: 'start' | 'end'
  next: number[]
}

/** Characters that match the same atoms, and so have the same transitions from every state. */
interface Kind {
  readonly fits: readonly boolean[]
}

/** A set of states, and its transition for each kind of character. */
interface StateSet {
  readonly states: readonly number[]
  readonly accepts: boolean
  readonly moves: Map<Kind, StateSet>
}

/** A compiled pattern with the `test` of a RegExp. Searches anywhere, as JSON Schema requires. */
export class LinearPattern {
  readonly #source: string
  readonly #effort: Effort
  readonly #states: State[] = []
  readonly #atoms: RegExp[] = []
  readonly #accept: number
  readonly #start: number
  #sets = new Map<string, StateSet>()
  #remembered = 0
  #kinds = new Map<string, Kind>()
  #characters = new Map<string, Kind>()

  /**
   * Throws an Error with a sentence when the pattern is malformed, uses look-around or back references, or is too
   * large.
   */
  constructor(source: string, effort = new Effort()) {
    this.#source = source
    this.#effort = effort
    this.#accept = this.#add({ next: [] })
    this.#start = this.#build(parsePattern(source), this.#accept)
  }

  /** Like that of a RegExp: validators distinguish patterns by it. */
  toString(): string {
    return `/${this.#source}/u`
  }

  /** Throws TooMuchEffort. */
  test(text: string): boolean {
    let set = this.#setOf([this.#start], true, text.length === 0)
    let left = text.length
    for (const character of text) {
      if (set.accepts) return true
      left -= character.length
      set = this.#move(set, this.#kindOf(character), left === 0)
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
        return this.#add({ atom: this.#atomOf(element.test), next: [next] })
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

  /** An expanded repetition contains the same atom many times; it is tested only once. */
  #atomOf(test: RegExp): number {
    const known = this.#atoms.findIndex(({ source }) => source === test.source)
    return known < 0 ? this.#atoms.push(test) - 1 : known
  }

  #kindOf(character: string): Kind {
    const known = this.#characters.get(character)
    if (known) return known
    if (this.#characters.size >= MAX_CHARACTERS) this.#forget()
    this.#effort.spend(this.#atoms.length)
    const fits = this.#atoms.map(atom => atom.test(character))
    const key = fits.map(Number).join('')
    const kind = this.#kinds.get(key) ?? { fits }
    this.#kinds.set(key, kind)
    this.#characters.set(character, kind)
    return kind
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
      if (state.atom === undefined) pending.push(...state.next)
    }
    this.#effort.spend(reached.size + 1)
    const states = [...reached].filter(id => this.#states[id]?.atom !== undefined).sort((a, b) => a - b)
    const accepts = reached.has(this.#accept)
    const key = `${accepts} ${states.join()}`
    let set = this.#sets.get(key)
    if (!set) {
      if (this.#remembered > MAX_REMEMBERED) this.#forget()
      this.#remembered += states.length + 1
      set = { states, accepts, moves: new Map() }
      this.#sets.set(key, set)
    }
    return set
  }

  #forget(): void {
    this.#sets = new Map()
    this.#remembered = 0
    this.#kinds = new Map()
    this.#characters = new Map()
  }

  #move(set: StateSet, kind: Kind, atEnd: boolean): StateSet {
    // The last character may satisfy a `$`, so its transition is not cached.
    const known = atEnd ? undefined : set.moves.get(kind)
    if (known) return known
    const seeds = set.states.flatMap(id => {
      const { atom, next } = this.#states[id] as State
      return atom !== undefined && kind.fits[atom] ? next : []
    })
    const reached = this.#setOf([...seeds, this.#start], false, atEnd)
    if (!atEnd) set.moves.set(kind, reached)
    return reached
  }
}
