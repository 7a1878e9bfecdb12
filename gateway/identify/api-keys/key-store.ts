/** The API keys of a file, read again when it changes: a revoked key must not wait for a reload. */
import { readFile, stat } from 'node:fs/promises'
import type { Log } from '../../types.js'
import { type ApiKey, MOST_FILE_BYTES, parseKeyFile } from './key-file.js'

/** How often the file is looked at. */
const LOOK_MS = 1000

export class KeyStore {
  readonly #file: string
  readonly #log: Log
  #byHash: ReadonlyMap<string, ApiKey> = new Map()
  /** When each key was last used here, by id; in ms since the epoch. */
  readonly #used = new Map<string, number>()
  #mark = ''
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Settled once the file has been read for the first time. */
  readonly ready: Promise<void>

  constructor(file: string, log: Log) {
    this.#file = file
    this.#log = log
    this.ready = this.#look()
  }

  find(hash: string): ApiKey | undefined {
    return this.#byHash.get(hash)
  }

  get keys(): Iterable<ApiKey> {
    return this.#byHash.values()
  }

  used(id: string, at: number): void {
    this.#used.set(id, at)
  }

  lastUse(id: string): number | undefined {
    return this.#used.get(id)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    try {
      const mark = await stat(this.#file).then(
        ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
        absent,
      )
      if (mark !== this.#mark) {
        this.#mark = mark
        await this.#read(mark)
      }
    } catch (error) {
      // Until the file can be read, what it said last stays in force.
      this.#log.error(
        { err: error, file: this.#file },
        'The API keys cannot be read: those known stay in force',
      )
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#look(), LOOK_MS).unref()
  }

  async #read(mark: string): Promise<void> {
    const text = mark === '' ? '{"version":1,"keys":[]}' : await readFile(this.#file, 'utf8')
    if (text.length > MOST_FILE_BYTES) throw new Error(`The file has more than ${MOST_FILE_BYTES} bytes.`)
    this.#byHash = new Map(parseKeyFile(text).keys.map(key => [key.hash, key]))
    const ids = new Set([...this.#byHash.values()].map(({ id }) => id))
    for (const id of this.#used.keys()) if (!ids.has(id)) this.#used.delete(id)
  }
}

/** Without the file there are no keys: `sluice keys add` makes it. */
function absent(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return ''
  throw error
}

interface Shared {
  readonly store: KeyStore
  users: number
}

const shared = new Map<string, Shared>()

/** The keys of a file for one more user, who must `release` them; a reload keeps what is known of them. */
export function shareKeyStore(file: string, log: Log): { store: KeyStore; release(): void } {
  let one = shared.get(file)
  if (one === undefined) {
    one = { store: new KeyStore(file, log), users: 0 }
    shared.set(file, one)
  }
  const { store } = one
  one.users += 1
  return {
    store,
    release() {
      const left = shared.get(file)
      if (left?.store !== store) return
      left.users -= 1
      if (left.users > 0) return
      shared.delete(file)
      store.close()
    },
  }
}
