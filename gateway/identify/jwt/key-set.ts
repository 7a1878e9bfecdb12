/**
 * The keys of an issuer, kept up to date: read when the configuration comes into force, then every ten minutes, and when a
 * token names a key that is not among them. Whatever is a key set replaces the last one, even if it has no key; while there is
 * none to be read, the last one stays.
 */
import type { Log } from '../../types.js'
import { sharedClock } from '../newest.js'
import type { KeySource } from './key-source.js'
import type { SkippedKey } from './public-keys.js'
import { isUnknownKey, type KeyOf, type Keys, keyFinder, WrongToken } from './token.js'

/** Times in milliseconds. */
const REFRESH = 600_000
/** How often a file is looked at. */
const LOOK = 2_000
/** An unknown key leads to a request at most this often, or made-up tokens would be a flood for the issuer. */
const UNKNOWN_KEY = 30_000
/** How long a token waits for the set, and how many may: an issuer that hangs must not hold the gateway's memory. */
const [LONGEST_WAIT, MOST_WAITING] = [1000, 500]
/** Until there is a first set: doubled with each failure. */
const [FIRST_RETRY, LAST_RETRY] = [500, 30_000]

/** Skipped keys in one line of the log. */
const MOST_SHOWN = 10

export class KeySet {
  readonly #source: KeySource
  readonly #name: string
  readonly #log: Log
  readonly #onRead: (keys: Keys, begun: number) => void
  /** Called when a key that was trusted no longer is. */
  readonly onRemoved = new Set<() => void>()
  /** Called when another set was read here. */
  readonly onReplaced = new Set<(keys: Keys) => void>()
  #keys: Keys['keys'] = []
  /** When the read that gave them began. */
  #begun = Number.NEGATIVE_INFINITY
  #find: KeyOf | undefined
  #reading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  /** What is wrong with the keys that were skipped. */
  #skipped = ''
  #waiting = 0
  #askedForUnknown = Number.NEGATIVE_INFINITY
  #isClosed = false

  /**
   * @param name for logs
   * @param onRead called with a set that was read here, and when the read began
   */
  constructor(source: KeySource, name: string, log: Log, onRead: (keys: Keys, begun: number) => void) {
    this.#source = source
    this.#name = name
    this.#log = log
    this.#onRead = onRead
  }

  start(): void {
    void this.#read()
  }

  /** The keys that are trusted, and when the read that gave them began; undefined until there are some. */
  get inForce(): { readonly set: Keys; readonly begun: number } | undefined {
    return this.#find && { set: { keys: this.#keys }, begun: this.#begun }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /**
   * The set is known from a read that began at this time, here or in another process. An answer that comes late must not
   * bring back a key that has left since. False if the same keys are in force, or newer ones.
   */
  learn({ keys }: Keys, begun: number): boolean {
    if (begun < this.#begun) return false
    this.#begun = begun
    const [before, after] = [this.#keys, keys].map(list => new Set(list.map(key => JSON.stringify(key))))
    const isRemoved = [...(before as Set<string>)].some(key => !after?.has(key))
    if (this.#find !== undefined && !isRemoved && before?.size === after?.size) return false
    this.#find = keyFinder({ keys })
    this.#keys = keys
    if (isRemoved) for (const notify of this.onRemoved) notify()
    return true
  }

  /**
   * The key that a token names. Rejects with WrongToken if the set, read again, has none; with another error if there is no
   * set.
   */
  readonly keyOf: KeyOf = async (header, token) => {
    const came = sharedClock()
    const deadline = came + LONGEST_WAIT
    if (this.#find === undefined && this.#reading !== undefined) await this.#waitFor(this.#reading, deadline)
    for (let mayWait = true; ; ) {
      if (this.#find === undefined) throw new Error(`there is no key set of ${this.#name} yet`)
      const begun = this.#begun
      try {
        return await this.#find(header, token)
      } catch (error) {
        if (!isUnknownKey(error)) throw error
      }
      // A read that began before the token came proves nothing: its key may be newer.
      const mayBeRight = begun < came
      if (!mayBeRight || !mayWait) throw new WrongToken('unknown key', { mayBeRight })
      const reading = this.#reading ?? this.#readForUnknown()
      mayWait = reading !== undefined && (await this.#waitFor(reading, deadline))
    }
  }

  /** Reads the set again for a key that is not in it; undefined if that was done just now. */
  #readForUnknown(): Promise<void> | undefined {
    const now = performance.now()
    if (now - this.#askedForUnknown < UNKNOWN_KEY) return undefined
    this.#askedForUnknown = now
    return this.#read()
  }

  /** True if it ended in time. */
  async #waitFor(reading: Promise<void>, deadline: number): Promise<boolean> {
    if (this.#waiting >= MOST_WAITING) return false
    this.#waiting += 1
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>(resolve => {
      timer = setTimeout(resolve, deadline - sharedClock(), false)
    })
    try {
      return await Promise.race([reading.then(() => true), late])
    } finally {
      clearTimeout(timer)
      this.#waiting -= 1
    }
  }

  #read(): Promise<void> {
    this.#reading ??= this.#replace().finally(() => {
      this.#reading = undefined
      this.#schedule()
    })
    return this.#reading
  }

  async #replace(): Promise<void> {
    const begun = sharedClock()
    try {
      const { set, skipped } = await this.#source.read()
      const isChanged = this.learn(set, begun)
      if (this.#failures > 0) this.#log.info({ jwks: this.#name }, 'the key set can be read again')
      this.#failures = 0
      this.#onRead(set, begun)
      this.#warnOf(skipped)
      if (isChanged) for (const notify of this.onReplaced) notify(set)
    } catch (error) {
      this.#failures += 1
      const kept = this.#find === undefined ? 'tokens cannot be checked' : 'the last good one stays'
      // One line when it begins, and then one for each hour or so.
      if (this.#failures === 1 || this.#failures % 64 === 0) {
        this.#log.warn({ err: error, jwks: this.#name }, `a key set cannot be read: ${kept}`)
      }
    }
  }

  /** Once, and again when others are skipped. */
  #warnOf(skipped: readonly SkippedKey[]): void {
    const keys = skipped.slice(0, MOST_SHOWN).map(({ index, fault }) => `keys[${index}] ${fault}`)
    const shown = keys.join()
    if (shown !== '' && shown !== this.#skipped) {
      this.#log.warn({ jwks: this.#name, keys }, `Keys of a key set are skipped: ${skipped.length}`)
    }
    this.#skipped = shown
  }

  #schedule(): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    const retry = Math.min(LAST_RETRY, FIRST_RETRY * 2 ** (this.#failures - 1))
    const wait = this.#failures > 0 ? retry : this.#source.hasChanged === undefined ? REFRESH : LOOK
    this.#timer = setTimeout(() => void this.#look(), wait).unref()
  }

  async #look(): Promise<void> {
    const changed = await (this.#source.hasChanged?.() ?? Promise.resolve(true)).catch(() => true)
    if (changed) await this.#read()
    else this.#schedule()
  }
}
