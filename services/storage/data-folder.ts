/** The data folder, and the keys that it keeps: made at the first start, and the same at every later one. */
import { randomBytes, randomUUID } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'

/** A key of 32 bytes in base64; `made` is true if this call made it. */
export interface StoredKey {
  readonly text: string
  readonly made: boolean
}

export interface StoredKeyOptions {
  /** What to do about a damaged file, as the end of a sentence. */
  readonly remedy: string
  /** The bytes of a new key; random by default. */
  readonly fresh?: Buffer
}

/**
 * Makes a folder and those above it, one by one: Node's recursive mkdir never returns where a file system makes no
 * folders, as below /proc. Throws as Node's file functions do.
 */
export function makeFolder(folder: string, mode?: number): void {
  if (existsSync(folder)) return
  const above = dirname(folder)
  if (above !== folder) makeFolder(above, mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process may have made it just now.
    if (!existsSync(folder)) throw error
  }
}

/** Makes the folder for keys and embedded databases, readable by its owner only. Throws an Error with a sentence. */
export function openFolder(folder: string): void {
  try {
    makeFolder(folder, 0o700)
    // Fails for a file, and for a folder that may not be entered.
    statSync(`${folder}/.`)
  } catch (error) {
    throw unusable(folder, error as Error)
  }
}

function unusable(folder: string, { message }: Error): Error {
  return new Error(`DATA_DIR ${folder} cannot be used: ${message}`)
}

/** Throws as `openFolder` would, as far as that shows without making the folder. */
export function tryFolder(folder: string): void {
  let present = resolve(folder)
  while (!existsSync(present)) present = dirname(present)
  try {
    // What is there must be a folder; one in which others must be made must be writable.
    accessSync(`${present}/.`, present === resolve(folder) ? constants.X_OK : constants.W_OK)
  } catch (error) {
    throw unusable(folder, error as Error)
  }
}

/** The key in a file, which the first call writes. Throws an Error with a sentence, for a damaged file too. */
export function storedKey(file: string, { remedy, fresh = randomBytes(32) }: StoredKeyOptions): StoredKey {
  const made = !existsSync(file) && keep(file, `${fresh.toString('base64')}\n`)
  const text = readFileSync(file, 'utf8').trim()
  if (isKey(text)) return { text, made }
  throw new Error(`${file} is damaged: it must hold 32 bytes in base64. ${remedy}`)
}

/** Whether a text is 32 bytes in base64. */
export const isKey = (text: string): boolean => /^[A-Za-z0-9+/]{43}=$/.test(text)

/**
 * If two processes start at once, one creates the file and both read it: the complete file is linked into place.
 * Returns false when another process created it.
 */
function keep(file: string, text: string): boolean {
  const options = { flag: 'wx', mode: 0o600 } as const
  const fresh = `${file}.${randomUUID()}`
  try {
    writeFileSync(fresh, text, options)
    try {
      linkSync(fresh, file)
    } catch (error) {
      if (isThere(error)) return false
      // Some network file systems do not support hard links.
      writeFileSync(file, text, options)
    } finally {
      rmSync(fresh)
    }
    return true
  } catch (error) {
    if (isThere(error)) return false
    throw new Error(`${file} cannot be written: ${(error as Error).message}`)
  }
}

const isThere = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EEXIST'
