/** Entries and modes set on the admin port, as requests look them up, and the overrides that set them. */
import { endOf } from '../../config/formats.js'
import type { LiveOverride } from '../admin/live-snapshot.js'
import type { Configuration } from '../configured/load.js'
import { type AccessEntry, AccessTable } from '../policy/access.js'
import { ModesForNow } from '../policy/modes.js'
import type { Log } from '../types.js'
import { compiledEntry, type RuntimeEntry } from './access-entry.js'
import { modePath } from './mode.js'
import { newestFirst, reportOverride, reportOverrides } from './override.js'
import { RedisOverrideStore } from './redis-store.js'
import { memoryOverrideStore, type OverrideStore } from './store.js'
import { isPast } from './until.js'

/** The modes in force until the first of them expires. */
interface Holding {
  readonly modes: ModesForNow
  /** Milliseconds since the epoch. */
  readonly until: number
  readonly made: WeakMap<Configuration, Configuration>
}

export class Runtime {
  readonly store: OverrideStore
  readonly overrides: OverrideLog
  /** Access entries as requests look them up. */
  readonly table = new AccessTable([])
  readonly #entries = new Map<RuntimeEntry, AccessEntry>()
  /** Null while no mode is set; undefined when it must be computed again. */
  #holding: Holding | null | undefined = null

  private constructor(openStore: (changed: () => void) => OverrideStore) {
    this.store = openStore(() => {
      this.#takeUpAccess()
      // Computed on next use, so that many changes in a row cost one computation.
      this.#holding = undefined
      this.overrides.look()
    })
    this.overrides = new OverrideLog(this.store)
  }

  /**
   * Resolves when what Redis holds is in force, or when Redis does not answer. `redis` is its address, or empty;
   * `unanswered` is called for each later look that fails.
   */
  static async open(redis: string, log: Log, unanswered = (): void => {}): Promise<Runtime> {
    if (redis === '') return new Runtime(memoryOverrideStore)
    let shared: RedisOverrideStore | undefined
    const runtime = new Runtime(changed => {
      shared = new RedisOverrideStore(redis, { changed, unanswered }, log)
      return shared
    })
    await shared?.opened()
    return runtime
  }

  /** The configuration with the modes in force now; `loaded` itself when none is set. */
  inForce(loaded: Configuration): Configuration {
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

  /** Updates only what has changed, so that an override among thousands of networks delays no request. */
  #takeUpAccess(): void {
    const wanted = new Set(this.store.contents.access.values())
    for (const [stored, entry] of this.#entries) {
      if (wanted.has(stored)) continue
      this.table.remove(entry)
      this.#entries.delete(stored)
    }
    for (const stored of wanted) {
      if (this.#entries.has(stored)) continue
      const entry = compiledEntry(stored)
      this.table.add(entry)
      this.#entries.set(stored, entry)
    }
  }

  #hold(): Holding | null {
    const now = Date.now()
    const holding = [...this.store.contents.modes.values()].filter(one => !isPast(one, now))
    if (holding.length === 0) return null
    const ends = holding.map(({ until }) => (until === undefined ? Number.POSITIVE_INFINITY : endOf(until)))
    const modes = new Map(holding.map(({ rule, mode }) => [rule, { mode, src: modePath(rule) }]))
    return { modes: new ModesForNow(modes), until: Math.min(...ends), made: new WeakMap() }
  }
}

/** The overrides performed so far, and notification of new ones. */
export class OverrideLog {
  readonly #store: OverrideStore
  readonly #listeners = new Set<(override: LiveOverride) => void>()
  #known = new Set<string>()

  constructor(store: OverrideStore) {
    this.#store = store
  }

  /** The newest first. */
  list(): LiveOverride[] {
    return reportOverrides(this.#store.contents)
  }

  /** Calls `listener` with each new override, whichever gateway performed it; returns a function that ends this. */
  watch(listener: (override: LiveOverride) => void): () => void {
    if (this.#listeners.size === 0) this.#known = new Set(this.#store.contents.overrides.keys())
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Called when the stored overrides may have changed: tells the listeners of new ones. */
  look(): void {
    if (this.#listeners.size === 0) return
    const { contents } = this.#store
    const added = [...contents.overrides.values()].filter(({ id }) => !this.#known.has(id))
    this.#known = new Set(contents.overrides.keys())
    for (const override of newestFirst(added).reverse()) {
      const reported = reportOverride(override, contents)
      for (const listener of this.#listeners) listener(reported)
    }
  }
}
