/** Entries and modes set on the admin port, as requests look them up, and the acts that set them. */
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

/** The modes in force until the first of them expires. */
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
  /** Null while no mode is set; undefined when it must be computed again. */
  #holding: Holding | null | undefined = null

  private constructor(keep: (changed: () => void) => Kept) {
    this.kept = keep(() => {
      this.#takeUpAccess()
      // Computed on next use, so that many changes in a row cost one computation.
      this.#holding = undefined
      this.acts.look()
    })
    this.acts = new Acts(this.kept)
  }

  /**
   * Resolves when what Redis holds is in force, or when Redis does not answer. `redis` is its address, or empty;
   * `unanswered` is called for each later look that fails.
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

  /** The configuration with the modes in force now; `loaded` itself when none is set. */
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

  /** Updates only what has changed, so that an act among thousands of networks delays no request. */
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

/** The acts performed so far, and notification of new ones. */
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

  /** Calls `listener` with each new act, whichever gateway performed it; returns a function that ends this. */
  watch(listener: (act: ToldAct) => void): () => void {
    if (this.#listeners.size === 0) this.#known = new Set(this.#kept.contents.acts.keys())
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Called when the stored acts may have changed: tells the listeners of new ones. */
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
