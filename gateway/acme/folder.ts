/**
 * The folder of ordered certificates, which all processes of all gateways that name it share: keys, certificates and the
 * challenges under way. Whatever is in it only its owner can read.
 */
import { createHash, randomUUID, X509Certificate } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { faultOf } from './check.js'

/** A chain and its key, in PEM form. */
export interface StoredCertificate {
  readonly file: string
  readonly cert: string
  readonly key: string
}

const OWNER_ONLY = 0o600
const KEY = '-----BEGIN PRIVATE KEY-----'
const MOST_BYTES = 256 * 1024
/** Certificates that are looked at in place of one that is missing. */
const MOST_OTHERS = 100
/** Characters of a domain in the name of a file. */
const MOST_NAMED = 100
const ENDING = '.pem'

export class CertificateFolder {
  readonly #folder: string
  readonly #domains: readonly string[]
  readonly #accountFile: string
  /** The certificate for these domains by this authority. */
  readonly file: string

  constructor(folder: string, directory: string, domains: readonly string[]) {
    this.#folder = folder
    this.#domains = domains
    this.#accountFile = join(folder, `account-${digest([directory])}.key`)
    const names = domains.toSorted()
    const file = `${names[0]?.slice(0, MOST_NAMED)}-${digest([directory, ...names])}${ENDING}`
    this.file = join(folder, file)
  }

  get lock(): string {
    return `${this.file}.lock`
  }

  /** Creates the folder, unless it is there. */
  async create(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
  }

  /** Undefined if there is none that can be used. */
  async read(): Promise<StoredCertificate | undefined> {
    const stored = await this.#certificateIn(this.file)
    return stored && faultOf(stored, this.#domains) === undefined ? stored : undefined
  }

  /**
   * A certificate for other domains, or of another authority, which is valid for at least one of these: better than none
   * while the first one is ordered. The one for most of them, then the one that ends last.
   */
  async readOther(): Promise<StoredCertificate | undefined> {
    const names = await readdir(this.#folder).catch(() => [])
    const files = names.filter(name => name.endsWith(ENDING)).slice(0, MOST_OTHERS)
    const found = await Promise.all(files.map(name => this.#certificateIn(join(this.#folder, name))))
    const rated = found.flatMap(stored => {
      if (stored === undefined) return []
      const covered = this.#domains.filter(domain => faultOf(stored, [domain]) === undefined).length
      return covered === 0 ? [] : { stored, covered, end: new X509Certificate(stored.cert).validTo }
    })
    rated.sort((a, b) => b.covered - a.covered || Date.parse(b.end) - Date.parse(a.end))
    return rated[0]?.stored
  }

  async write(cert: string, key: string): Promise<StoredCertificate> {
    await writePrivately(this.file, `${cert}${key}`)
    return { file: this.file, cert, key }
  }

  async readAccountKey(): Promise<string | undefined> {
    return readSmall(this.#accountFile)
  }

  async writeAccountKey(key: string): Promise<void> {
    await writePrivately(this.#accountFile, key)
  }

  async #certificateIn(file: string): Promise<StoredCertificate | undefined> {
    const text = await readSmall(file)
    const end = text?.indexOf(KEY) ?? -1
    return text === undefined || end === -1
      ? undefined
      : { file, cert: text.slice(0, end), key: text.slice(end) }
  }
}

/** Undefined if it is not there, cannot be read, or is too large to be one of ours. */
export async function readSmall(file: string): Promise<string | undefined> {
  try {
    const { size } = await stat(file)
    return size > MOST_BYTES ? undefined : await readFile(file, 'utf8')
  } catch {
    return undefined
  }
}

/** Whole or not at all, also when the machine stops. */
export async function writePrivately(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  try {
    const handle = await open(draft, 'wx', OWNER_ONLY)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}
