/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { readFileSync, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
import { type InUse, Shared } from '../shared.js'
import { type ApiKey, MOST_FILE_BYTES, NO_KEYS, parseKeyFile } from './key-file.js'

/** How often the file is looked at. */
const LOOK_MS = 1000

export class KeyStore {
  readonly #file: string
  readonly #log: Log
  #keys: readonly ApiKey[] = []
  #byHash: ReadonlyMap<string, ApiKey> = new Map()
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
      if (found !== undefined) this.#replace(markOf(found), readFileSync(file, 'utf8'))
    } catch (error) {
      this.#unreadable(error)
    }
    this.#schedule()
  }

  find(hash: string): ApiKey | undefined {
    return this.#byHash.get(hash)
  }

  /** In the order of the file. */
  get keys(): readonly ApiKey[] {
    return this.#keys
  }

  /** Why the file cannot be read now, as a sentence: `keys` are those of before. */
  get trouble(): string | undefined {
    return this.#trouble
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
      if (mark !== this.#mark) this.#replace(mark, mark === '' ? '' : await readFile(this.#file, 'utf8'))
      this.#trouble = this.#unusable
    } catch (error) {
      this.#unreadable(error)
    }
    this.#schedule()
  }

  /** Until `sluice keys add` makes the file, there are no keys. One that is gone is a fault, and revokes none. */
  readonly #absent = (error: NodeJS.ErrnoException): string => {
    if (error.code === 'ENOENT' && this.#byHash.size === 0) return ''
    throw error
  }

  #replace(mark: string, text: string): void {
    // A file that cannot be used is not read again until it changes.
    this.#mark = mark
    try {
      this.#keys = (mark === '' ? NO_KEYS : parseKeyFile(text)).keys
      this.#unusable = undefined
    } catch (error) {
      this.#unusable = (error as Error).message
      throw error
    }
    this.#byHash = new Map(this.#keys.map(key => [key.hash, key]))
    const ids = new Set(this.#keys.map(({ id }) => id))
    for (const id of this.used.keys()) if (!ids.has(id)) this.used.delete(id)
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

function markOf({ mtimeMs, size, ino }: { mtimeMs: number; size: number; ino: number }): string {
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

/** The keys of a file for one more user, who must release them. */
export function useKeys(file: string, log: Log): InUse<KeyStore> {
  return stores.use(file, () => new KeyStore(file, log))
}

/** When each key was last used in this process, by id; in ms since the epoch. */
export function keyUses(): [string, number][] {
  return stores.values.flatMap(({ used }) => [...used])
}
