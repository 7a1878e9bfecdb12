/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { createHash } from 'node:crypto'
import { readFileSync, type Stats, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
import { areFilesChecked } from '../checked.js'
import { checkedMark } from '../credential-file.js'
import { Newest, type Read, sharedClock } from '../newest.js'
import { type InUse, Shared } from '../shared.js'
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

/** The text of a file that a process has read. */
export interface ReadKeys extends Read {
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
      if (found === undefined) this.#table = NO_KEYS
      else atOnce(this.#replacing(markOf(found), readFileSync(file, 'utf8'), begun))
    } catch (error) {
      if (known !== undefined) atOnce(this.#replacing(KNOWN, known.text, known.begun))
      this.#withoutFile(error as Error)
    }
    this.#schedule()
  }

  /** What to tell another process of this gateway; undefined while no keys were ever read. */
  get inForce(): ReadKeys | undefined {
    if (this.#table === undefined) return undefined
    const text = JSON.stringify({ version: 1, keys: this.#table.keys })
    return { id: this.#file, text, begun: this.#newest.begun }
  }

  /**
   * Another process has read the file. False if this is known, or something newer; otherwise it will be in force in a
   * moment.
   */
  learn({ text, begun }: ReadKeys): boolean {
    const digest = digestOf(text)
    if (begun < this.#newest.begun) return false
    const isKnown = digest === this.#newest.digest
    this.#newest = { begun, digest }
    if (isKnown) return false
    inSteps(this.#using(text, begun)).catch(error => this.#unreadable(error))
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
      const digest = digestOf(written)
      const isNew = begun >= this.#newest.begun && digest !== this.#newest.digest
      if (isNew) yield* this.#using(written, begun)
      if (begun >= this.#newest.begun) this.#newest = { begun, digest }
      this.#unusable = undefined
      // That there is no file revokes no key elsewhere.
      if (isNew && mark !== '') this.#onRead({ id: this.#file, text: written, begun })
    } catch (error) {
      this.#unusable = (error as Error).message
      throw error
    }
  }

  /** Puts the keys of a text in force, unless newer ones have come meanwhile. */
  *#using(text: string, begun: number): Generator<void, void> {
    const table = yield* readingKeys(text)
    if (begun < this.#newest.begun) return
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

function textOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return NOTHING
  markOf(found)
  return readFileSync(file, 'utf8')
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

const stores = new Shared<KeyStore>()
/** Texts that were read and are not used here yet. */
const known = new Newest<ReadKeys>()
let tellOthers: (read: ReadKeys) => void = () => undefined

/** @param tell passes a text that was read here on to the other processes of this gateway */
export function shareKeys(tell: (read: ReadKeys) => void): void {
  tellOthers = tell
}

/** The keys in force whose file may say something else by now: what a new process has to know. */
export function keysInForce(): ReadKeys[] {
  return stores.values.flatMap(store => (store.isCurrent ? [] : (store.inForce ?? [])))
}

/** What another process has read: the file need not be readable any more. False if it is known, or something newer. */
export function learnKeys(read: ReadKeys): boolean {
  return stores.get(read.id)?.learn(read) ?? known.add(read)
}

/** @throws a sentence that says why the file of keys cannot be used */
export function checkKeys(file: string): void {
  if (areFilesChecked()) return
  try {
    // To read many keys at once would stop the requests of a running gateway at each reload.
    if (stores.get(file)?.isCurrent !== true) keepChecked(file)
  } catch (error) {
    throw new Error(`${file} cannot be used: ${(error as Error).message}`)
  }
}

/** What was found right counts, even if the file says something else a moment later. */
function keepChecked(file: string): void {
  const begun = sharedClock()
  const text = textOf(file)
  parseKeyFile(text)
  if (stores.get(file) === undefined) known.add({ id: file, text, begun })
}

/** The keys of a file for one more user, who must release them. */
export function useKeys(file: string, log: Log): InUse<KeyStore> {
  return stores.use(file, () => new KeyStore(file, log, tellOthers, known.take(file)))
}

/** When each key was last used in this process, by id; in ms since the epoch. */
export function keyUses(): [string, number][] {
  return stores.values.flatMap(({ used }) => [...used])
}
