/** Files with one secret, such as those that a container's platform mounts. */
import { isUtf8 } from 'node:buffer'
import { closeSync, constants, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs'
import { passesUnseen } from './marks.js'

const MAX_BYTES = 64 * 1024
/** How long what writes into a pipe is waited for: by who starts, and by who serves others meanwhile. */
export const PATIENCE_MS = { starting: 30_000, serving: 200 }

/** The secret without the line break at its end; or the end of a sentence that says why there is none. */
export type Secret = { readonly text: string } | { readonly fault: string; readonly passes?: boolean }

/** What was read from files that may be read only once, such as pipes. */
const readOnce = new Map<string, Secret>()

/** True if the file is none that could be read again: what was in it stays. */
export const isReadOnce = (file: string): boolean => readOnce.has(file)

/** Waits for the writer of a pipe, but not for ever, and not when it was read before. Never throws. */
export function readSecret(file: string, patienceMs = PATIENCE_MS.starting): Secret {
  try {
    const info = statSync(file, { throwIfNoEntry: false })
    if (info?.isFile()) readOnce.delete(file)
    const known = readOnce.get(file)
    if (known !== undefined) return known
    const found = info ?? statSync(file)
    const secret = secretIn(file, found, patienceMs)
    if (!found.isFile() && 'text' in secret) readOnce.set(file, secret)
    return secret
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    return { fault: `cannot be read (${code})`, passes: passesUnseen(error) }
  }
}

/** Throws the file system's error. */
function secretIn(file: string, info: Stats, patienceMs: number): Secret {
  const bytes = info.isFile() && info.size <= MAX_BYTES ? readFileSync(file) : readStream(file, patienceMs)
  if (bytes === undefined) return { fault: 'is a pipe into which nobody writes' }
  if (bytes.length > MAX_BYTES) return { fault: 'is larger than 64 KiB' }
  if (!isUtf8(bytes) || bytes.includes(0)) return { fault: 'is not a text file' }
  const text = bytes.toString('utf8').replace(/\r?\n$/, '')
  // An empty file (such as a failed mount) must not mean "no key required".
  return text.trim() === '' ? { fault: 'is empty' } : { text }
}

/** Up to one byte more than a secret may have; undefined if nothing comes in time. To open a pipe would wait without end. */
function readStream(file: string, patienceMs: number): Buffer | undefined {
  const ends = performance.now() + patienceMs
  const bytes = Buffer.alloc(MAX_BYTES + 1)
  const open = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    let length = 0
    while (length < bytes.length) {
      const read = readSome(open, bytes, length)
      if (read === 0 && length > 0) break
      // Before the first byte, an end says that nobody has opened it for writing yet.
      if (read > 0) length += read
      else if (performance.now() > ends) return undefined
      else Atomics.wait(SLEEP, 0, 0, 10)
    }
    return bytes.subarray(0, length)
  } finally {
    closeSync(open)
  }
}

const SLEEP = new Int32Array(new SharedArrayBuffer(4))

/** How many bytes have come: 0 at the end, -1 if there are none yet. */
function readSome(open: number, bytes: Buffer, offset: number): number {
  try {
    return readSync(open, bytes, offset, bytes.length - offset, null)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    return -1
  }
}
