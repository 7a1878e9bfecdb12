/** Entries, modes and negotiated limits set on the admin port, as requests look them up, and the overrides that set them. */
import { endOf } from '../../config/formats.js'
import type { LiveOverride } from '../admin/live-snapshot.js'
import type { Configuration } from '../configured/load.js'
import { type AccessEntry, AccessTable } from '../policy/access.js'
import { ModesForNow } from '../policy/modes.js'
import type { ForNow } from '../policy/policy.js'
import { compiledEntry, type RuntimeEntry } from './access-entry.js'
import { modePath } from './mode.js'
import { newestFirst, type OverrideJournal, reportOverride, reportOverrides } from './override.js'
import { quotaForNow } from './quota.js'
import type { Contents, OverrideStore } from './store.js'
import { isPast } from './until.js'

/** The modes and limits in force until the first of them expires. */
interface Holding {
  readonly forNow: ForNow
  /** Milliseconds since the epoch. */
  readonly until: number
  readonly made: WeakMap<Configuration, Configuration>
}

/** Where the contents, as last known, come from. */
type ContentsSource = Pick<OverrideStore, 'contents'>

/** What is in force in this process. */
export class Runtime {
  readonly overrides: OverrideLog
  readonly journal: OverrideJournal
  /** Access entries as requests look them up. */
  readonly table = new AccessTable([])
  readonly #source: ContentsSource
  readonly #entries = new Map<RuntimeEntry, AccessEntry>()
  /** Null while neither a mode nor a limit is set; undefined when it must be computed again. */
  #holding: Holding | null | undefined = null

  constructor(source: ContentsSource, journal: OverrideJournal) {
    this.#source = source
    this.journal = journal
    this.overrides = new OverrideLog(source)
  }

  get contents(): Contents {
    return this.#source.contents
  }

  /** Puts in force what the source holds by now. */
  changed(): void {
    this.#takeUpAccess()
    // Computed on next use, so that many changes in a row cost one computation.
    this.#holding = undefined
    this.overrides.look()
  }

  /** The configuration with the modes and limits in force now; `loaded` itself when none is set. */
  inForce(loaded: Configuration): Configuration {
    if (this.#holding === null) return loaded
    if (this.#holding === undefined || Date.now() >= this.#holding.until) this.#holding = this.#hold()
    if (this.#holding === null) return loaded
    const { forNow, made } = this.#holding
    let changed = made.get(loaded)
    if (changed === undefined) {
      changed = { ...loaded, compiled: loaded.compiled.withOverrides(forNow) }
      made.set(loaded, changed)
    }
    return changed
  }

  /** Updates only what has changed, so that an override among thousands of networks delays no request. */
  #takeUpAccess(): void {
    const wanted = new Set(this.contents.access.values())
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
    const modes = [...this.contents.modes.values()].filter(one => !isPast(one, now))
    const quotas = [...this.contents.quotas.values()].filter(one => !isPast(one, now))
    const holding = [...modes, ...quotas]
    if (holding.length === 0) return null
    const ends = holding.map(({ until }) => (until === undefined ? Number.POSITIVE_INFINITY : endOf(until)))
    const byRule = new Map(modes.map(({ rule, mode }) => [rule, { mode, src: modePath(rule) }]))
    const forNow = {
      ...(modes.length > 0 && { modes: new ModesForNow(byRule) }),
      ...(quotas.length > 0 && { quotas: quotas.map(quotaForNow) }),
    }
    return { forNow, until: Math.min(...ends), made: new WeakMap() }
  }
}

/** The overrides performed so far, and notification of new ones. */
export class OverrideLog {
  readonly #source: ContentsSource
  readonly #listeners = new Set<(override: LiveOverride) => void>()
  #known = new Set<string>()

  constructor(source: ContentsSource) {
    this.#source = source
  }

  /** The newest first. */
  list(): LiveOverride[] {
    return reportOverrides(this.#source.contents)
  }

  /** Calls `listener` with each new override, whichever gateway performed it; returns a function that ends this. */
  watch(listener: (override: LiveOverride) => void): () => void {
    if (this.#listeners.size === 0) this.#known = new Set(this.#source.contents.overrides.keys())
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Called when the stored overrides may have changed: tells the listeners of new ones. */
  look(): void {
    if (this.#listeners.size === 0) return
    const { contents } = this.#source
    const added = [...contents.overrides.values()].filter(({ id }) => !this.#known.has(id))
    this.#known = new Set(contents.overrides.keys())
    for (const override of newestFirst(added).reverse()) {
      const reported = reportOverride(override, contents)
      for (const listener of this.#listeners) listener(reported)
    }
  }
}
