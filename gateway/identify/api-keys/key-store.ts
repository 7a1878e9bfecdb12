/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { readFileSync, type Stats, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
import { areFilesChecked } from '../checked.js'
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

export class KeyStore {
  readonly #file: string
  readonly #log: Log
  #table: KeyTable | undefined
  #trouble: string | undefined
  /** Why the file with the mark of the last read cannot be used. */
  #unusable: string | undefined
  /** When each key was last used here, by id; in ms since the epoch. */
  readonly used = new Map<string, number>()
  #mark = ''
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * Reads the file at once: no request may come before its keys are known.
   *
   * @param known its text as another process knows it, for when it cannot be read
   */
  constructor(file: string, log: Log, known?: string) {
    this.#file = file
    this.#log = log
    try {
      const found = statSync(file, { throwIfNoEntry: known === undefined ? false : undefined })
      if (found === undefined) this.#table = NO_KEYS
      else atOnce(this.#replacing(markOf(found), readFileSync(file, 'utf8')))
    } catch (error) {
      if (known !== undefined) atOnce(this.#replacing(KNOWN, known))
      this.#unreadable(error)
    }
    this.#schedule()
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
    try {
      const mark = await stat(this.#file).then(markOf, this.#absent)
      if (mark !== this.#mark) {
        const text = mark === '' ? '' : await readFile(this.#file, 'utf8')
        await inSteps(this.#replacing(mark, text))
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

  *#replacing(mark: string, text: string): Generator<void, void> {
    // A file that cannot be used is not read again until it changes.
    this.#mark = mark
    try {
      yield
      const table = mark === '' ? NO_KEYS : yield* readingKeys(text)
      this.#table = table
      this.#unusable = undefined
      for (const id of this.used.keys()) if (!table.byId.has(id)) this.used.delete(id)
    } catch (error) {
      this.#unusable = (error as Error).message
      throw error
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

function markOf(found: Stats): string {
  const { mtimeMs, size, ino } = found
  // To open a FIFO would wait for somebody to write to it.
  if (!found.isFile()) throw new Error(`It is ${found.isDirectory() ? 'a folder' : 'not a regular file'}.`)
  if (size > MOST_FILE_BYTES) throw new Error(`The file has more than ${MOST_FILE_BYTES} bytes.`)
  return `${mtimeMs} ${size} ${ino}`
}

/** The keys of a file; none if it does not exist. @throws a sentence that says why it cannot be used */
export function readKeys(file: string): readonly ApiKey[] {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return []
  markOf(found)
  return parseKeyFile(readFileSync(file, 'utf8')).keys
}

const stores = new Shared<KeyStore>()
/** Texts of files of keys that another process of this gateway knows, by path. */
const known = new Map<string, string>()

/** The keys in force whose file may say something else by now: what a new process has to know. */
export function keysInForce(): [file: string, text: string][] {
  return stores.values
    .filter(store => store.keys.length > 0 && !store.isCurrent)
    .map(({ file, keys }) => [file, JSON.stringify({ version: 1, keys })])
}

/** What another process knows, before this one reads any file of keys: it need not be readable any more. */
export function learnKeys(files: readonly (readonly [file: string, text: string])[]): void {
  for (const [file, text] of files) known.set(file, text)
}

/** @throws a sentence that says why the file of keys cannot be used */
export function checkKeys(file: string): void {
  if (areFilesChecked()) return
  try {
    // To read many keys at once would stop the requests of a running gateway at each reload.
    if (stores.get(file)?.isCurrent !== true) readKeys(file)
  } catch (error) {
    throw new Error(`${file} cannot be used: ${(error as Error).message}`)
  }
}

/** The keys of a file for one more user, who must release them. */
export function useKeys(file: string, log: Log): InUse<KeyStore> {
  return stores.use(file, () => {
    const store = new KeyStore(file, log, known.get(file))
    known.delete(file)
    return store
  })
}

/** When each key was last used in this process, by id; in ms since the epoch. */
export function keyUses(): [string, number][] {
  return stores.values.flatMap(({ used }) => [...used])
}
