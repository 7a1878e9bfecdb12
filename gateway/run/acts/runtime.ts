/** What the admin port was told, as requests look it up, and what was done there. */
import { endOf } from '../../../config/formats.js'
import { type AccessEntry, AccessTable } from '../../policy/access.js'
import { ModesForNow } from '../../policy/modes.js'
import type { Log } from '../../types.js'
import type { Loaded } from '../load.js'
import { compiledEntry, type RuntimeEntry } from './access-entry.js'
import { newestFirst, type ToldAct, toldAct, toldActs } from './act.js'
import { type Kept, keptHere } from './kept.js'
import { KeptInRedis } from './kept-in-redis.js'
import { modePath } from './mode-desk.js'
import { isPast } from './until.js'

/** Modes that are in force, until the first of them ends. */
interface Holding {
  readonly modes: ModesForNow
  /** Milliseconds since the epoch. */
  readonly until: number
  readonly made: WeakMap<Loaded, Loaded>
}

export class Runtime {
  readonly kept: Kept
  readonly acts: Acts
  /** Access entries as requests look them up. */
  readonly table = new AccessTable([])
  readonly #entries = new Map<RuntimeEntry, AccessEntry>()
  /** Null while no mode is set; undefined when it has to be looked up anew. */
  #holding: Holding | null | undefined = null

  private constructor(keep: (changed: () => void) => Kept) {
    this.kept = keep(() => {
      this.#takeUpAccess()
      // Made when it is next looked at: many changes in a row make it once.
      this.#holding = undefined
      this.acts.look()
    })
    this.acts = new Acts(this.kept)
  }

  /**
   * What Redis holds is in force when this resolves, unless it does not answer. `redis` is its address, or empty; `unanswered`
   * hears of each look at it that fails later.
   */
  static async open(redis: string, log: Log, unanswered = (): void => {}): Promise<Runtime> {
    if (redis === '') return new Runtime(keptHere)
    let shared: KeptInRedis | undefined
    const runtime = new Runtime(changed => {
      shared = new KeptInRedis(redis, { changed, unanswered }, log)
      return shared
    })
    await shared?.opened()
    return runtime
  }

  /** A configuration with the modes that hold now; itself where none is set. */
  inForce(loaded: Loaded): Loaded {
    if (this.#holding === null) return loaded
    if (this.#holding === undefined || Date.now() >= this.#holding.until) this.#holding = this.#hold()
    if (this.#holding === null) return loaded
    const { modes, made } = this.#holding
    let changed = made.get(loaded)
    if (changed === undefined) {
      changed = { ...loaded, compiled: loaded.compiled.withModes(modes) }
      made.set(loaded, changed)
    }
    return changed
  }

  /** Only what has changed, so that an act among thousands of networks holds up no request. */
  #takeUpAccess(): void {
    const wanted = new Set(this.kept.contents.access.values())
    for (const [kept, entry] of this.#entries) {
      if (wanted.has(kept)) continue
      this.table.remove(entry)
      this.#entries.delete(kept)
    }
    for (const kept of wanted) {
      if (this.#entries.has(kept)) continue
      const entry = compiledEntry(kept)
      this.table.add(entry)
      this.#entries.set(kept, entry)
    }
  }

  #hold(): Holding | null {
    const now = Date.now()
    const holding = [...this.kept.contents.modes.values()].filter(one => !isPast(one, now))
    if (holding.length === 0) return null
    const ends = holding.map(({ until }) => (until === undefined ? Number.POSITIVE_INFINITY : endOf(until)))
    const modes = new Map(holding.map(({ rule, mode }) => [rule, { mode, src: modePath(rule) }]))
    return { modes: new ModesForNow(modes), until: Math.min(...ends), made: new WeakMap() }
  }
}

/** What was done, for whoever tells of it. */
export class Acts {
  readonly #kept: Kept
  readonly #listeners = new Set<(act: ToldAct) => void>()
  #known = new Set<string>()

  constructor(kept: Kept) {
    this.#kept = kept
  }

  /** The newest first. */
  list(): ToldAct[] {
    return toldActs(this.#kept.contents)
  }

  /** Calls `listener` with each act that comes, whichever gateway it was done on; returns what ends that. */
  watch(listener: (act: ToldAct) => void): () => void {
    if (this.#listeners.size === 0) this.#known = new Set(this.#kept.contents.acts.keys())
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The kept acts may have changed. */
  look(): void {
    if (this.#listeners.size === 0) return
    const { contents } = this.#kept
    const added = [...contents.acts.values()].filter(({ id }) => !this.#known.has(id))
    this.#known = new Set(contents.acts.keys())
    for (const act of newestFirst(added).reverse()) {
      const told = toldAct(act, contents)
      for (const listener of this.#listeners) listener(told)
    }
  }
}
