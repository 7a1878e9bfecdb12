/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { readFileSync, type Stats, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
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

export class KeyStore {
  readonly #file: string
  readonly #log: Log
  #table: KeyTable = NO_KEYS
  #trouble: string | undefined
  /** Why the file with the mark of the last read cannot be used. */
  #unusable: string | undefined
  /** When each key was last used here, by id; in ms since the epoch. */
  readonly used = new Map<string, number>()
  #mark = ''
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** Reads the file at once: no request may come before its keys are known. */
  constructor(file: string, log: Log) {
    this.#file = file
    this.#log = log
    try {
      const found = statSync(file, { throwIfNoEntry: false })
      if (found !== undefined) atOnce(this.#replacing(markOf(found), readFileSync(file, 'utf8')))
    } catch (error) {
      this.#unreadable(error)
    }
    this.#schedule()
  }

  find(hash: string): ApiKey | undefined {
    return this.#table.byHash.get(hash)
  }

  /** In the order of the file. */
  get keys(): readonly ApiKey[] {
    return this.#table.keys
  }

  /** Why the file cannot be read now, as a sentence: `keys` are those of before. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** True if the keys are those of the file as it is now. */
  hasRead(file: string): boolean {
    if (file !== this.#file || this.#trouble !== undefined) return false
    const found = statSync(file, { throwIfNoEntry: false })
    return found !== undefined && markOf(found) === this.#mark
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#look(), LOOK_MS).unref()
  }

  async #look(): Promise<void> {
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
    this.#schedule()
  }

  /** Until `sluice keys add` makes the file, there are no keys. One that is gone is a fault, and revokes none. */
  readonly #absent = (error: NodeJS.ErrnoException): string => {
    if (error.code === 'ENOENT' && this.#table.keys.length === 0) return ''
    throw error
  };

  *#replacing(mark: string, text: string): Generator<void, void> {
    // A file that cannot be used is not read again until it changes.
    this.#mark = mark
    try {
      yield
      this.#table = mark === '' ? NO_KEYS : yield* readingKeys(text)
      this.#unusable = undefined
    } catch (error) {
      this.#unusable = (error as Error).message
      throw error
    }
    for (const id of this.used.keys()) if (!this.#table.byId.has(id)) this.used.delete(id)
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

/** @throws a sentence that says why the file of keys cannot be used */
export function checkKeys(file: string): void {
  try {
    // To read many keys at once would stop the requests of a running gateway at each reload.
    if (!stores.values.some(store => store.hasRead(file))) readKeys(file)
  } catch (error) {
    throw new Error(`${file} cannot be used: ${(error as Error).message}`)
  }
}

/** The keys of a file for one more user, who must release them. */
export function useKeys(file: string, log: Log): InUse<KeyStore> {
  return stores.use(file, () => new KeyStore(file, log))
}

/** When each key was last used in this process, by id; in ms since the epoch. */
export function keyUses(): [string, number][] {
  return stores.values.flatMap(({ used }) => [...used])
}
