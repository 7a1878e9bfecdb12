/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { createHash } from 'node:crypto'
import { readFileSync, type Stats, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
import { checkedMark } from '../credential-file.js'
import { type Read, sharedClock } from '../newest.js'
import {
  type ApiKey,
  type KeyTable,
  MOST_FILE_BYTES,
  NO_KEYS,
  parseKeyFile,
  readingKeys,
} from './key-file.js'
import { atOnce, inSteps } from './steps.js'

/** How often the file is looked at. */
const LOOK_MS = 1000
/** In place of a file's mark: keys that another process knows. */
const KNOWN = 'known'
/** In place of the text of a file that does not exist. */
const NOTHING = '{"version":1,"keys":[]}'

/** That a process has read a text that can be used. */
export interface KeyNews extends Read {
  readonly digest: string
}

/** The same with the keys, as a file of them; they may be spelt otherwise than in the text of the digest. */
export interface ReadKeys extends KeyNews {
  readonly text: string
}

export class KeyStore {
  readonly #file: string
  readonly #log: Log
  readonly #onRead: (read: ReadKeys) => void
  #table: KeyTable | undefined
  #trouble: string | undefined
  /** Why the file with the mark of the last read cannot be used. */
  #unusable: string | undefined
  /** When each key was last used here, by id; in ms since the epoch. */
  readonly used = new Map<string, number>()
  #mark = ''
  /** When the newest read known began, here or in another process, and what it found. */
  #newest = { begun: 0, digest: '' }
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * Reads the file at once: no request may come before its keys are known.
   *
   * @param onRead called with each text that is put in force here, unless it was learned
   * @param known the last text known, for when the file cannot be read
   */
  constructor(file: string, log: Log, onRead: (read: ReadKeys) => void, known?: ReadKeys) {
    this.#file = file
    this.#log = log
    this.#onRead = onRead
    const begun = sharedClock()
    try {
      const found = statSync(file, { throwIfNoEntry: known === undefined ? false : undefined })
      if (found === undefined) {
        this.#table = NO_KEYS
        log.warn({ file }, 'There is no file of API keys: until there is one, every key is wrong')
      } else atOnce(this.#replacing(markOf(found), readFileSync(file, 'utf8'), begun))
    } catch (error) {
      if (known !== undefined) {
        atOnce(this.#using(known))
        this.#mark = KNOWN
      }
      this.#withoutFile(error as Error)
    }
    this.#schedule()
  }

  /** What to tell another process of this gateway; undefined while no keys were ever read. */
  get inForce(): ReadKeys | undefined {
    if (this.#table === undefined) return undefined
    const text = JSON.stringify({ version: 1, keys: this.#table.keys })
    return { id: this.#file, text, ...this.#newest }
  }

  /** Another process has read the file. True if its text is wanted: this one cannot read the same there by now. */
  async wants(news: KeyNews): Promise<boolean> {
    if (this.#isNew(news)) await this.look()
    return this.#isNew(news)
  }

  /**
   * What another process has read. False if this is known, or something newer; otherwise it will be in force in a
   * moment.
   */
  learn(read: ReadKeys): boolean {
    if (!this.#isNew(read)) return false
    inSteps(this.#using(read)).catch(error => this.#unreadable(error))
    return true
  }

  /** @throws while no keys were ever read, so that whether this is one cannot be said */
  find(hash: string): ApiKey | undefined {
    if (this.#table === undefined) throw new Error('the keys have not been read')
    return this.#table.byHash.get(hash)
  }

  /** In the order of the file. */
  get keys(): readonly ApiKey[] {
    return this.#table?.keys ?? []
  }

  /** Why the file cannot be read now, as a sentence: `keys` are those of before. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  get file(): string {
    return this.#file
  }

  /** True if the keys are those of the file as it is now. */
  get isCurrent(): boolean {
    if (this.#trouble !== undefined) return false
    try {
      return markOf(statSync(this.#file)) === this.#mark
    } catch {
      return false
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.look(), LOOK_MS).unref()
  }

  #looking: Promise<void> | undefined

  /** Resolves when the file was looked at, and read if it has changed. */
  look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
      this.#schedule()
    })
    return this.#looking
  }

  async #read(): Promise<void> {
    const begun = sharedClock()
    try {
      const mark = await stat(this.#file).then(markOf, this.#absent)
      if (mark !== this.#mark) {
        const text = mark === '' ? '' : await readFile(this.#file, 'utf8')
        await inSteps(this.#replacing(mark, text, begun))
      }
      this.#trouble = this.#unusable
    } catch (error) {
      this.#unreadable(error)
    }
  }

  /** Until `sluice keys add` makes the file, there are no keys. One that is gone is a fault, and revokes none. */
  readonly #absent = (error: NodeJS.ErrnoException): string => {
    if (error.code === 'ENOENT' && this.#table?.keys.length === 0) return ''
    throw error
  };

  *#replacing(mark: string, text: string, begun: number): Generator<void, void> {
    // A file that cannot be used is not read again until it changes.
    this.#mark = mark
    try {
      yield
      const written = mark === '' ? NOTHING : text
      const read = { id: this.#file, text: written, digest: digestOf(written), begun }
      const isNew = this.#isNew(read)
      if (isNew) yield* this.#using(read)
      this.#unusable = undefined
      // That there is no file revokes no key elsewhere.
      if (isNew && mark !== '') this.#onRead(read)
    } catch (error) {
      this.#unusable = (error as Error).message
      throw error
    }
  }

  /** False if it is known, which is noted, or something newer is. */
  #isNew({ begun, digest }: KeyNews): boolean {
    if (begun >= this.#newest.begun && digest !== this.#newest.digest) return true
    this.#newest.begun = Math.max(begun, this.#newest.begun)
    return false
  }

  /** Puts keys in force, unless newer ones have come meanwhile. */
  *#using({ text, begun, digest }: ReadKeys): Generator<void, void> {
    const table = yield* readingKeys(text)
    if (begun < this.#newest.begun) return
    this.#newest = { begun, digest }
    this.#table = table
    for (const id of this.used.keys()) if (!table.byId.has(id)) this.used.delete(id)
  }

  /** The file cannot be used at the start. */
  #withoutFile(error: Error): void {
    try {
      this.#mark = this.#absent(error)
    } catch {
      this.#unreadable(error)
    }
  }

  #reported = ''

  /** Said once, and again when the reason changes. */
  #unreadable(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException
    this.#trouble = code === undefined ? message : `The file cannot be read (${code}).`
    const reason = `${this.#mark} ${message}`
    if (reason === this.#reported) return
    this.#reported = reason
    this.#log.error(
      { err: error, file: this.#file },
      'The API keys cannot be read: those known stay in force',
    )
  }
}

const markOf = (found: Stats) => checkedMark(found, MOST_FILE_BYTES)

/** The keys of a file; none if it does not exist. @throws a sentence that says why it cannot be used */
export function readKeys(file: string): readonly ApiKey[] {
  return parseKeyFile(textOf(file)).keys
}

/** The text of a file of keys. @throws a sentence that says why it must not be opened */
export function textOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return NOTHING
  markOf(found)
  return readFileSync(file, 'utf8')
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
