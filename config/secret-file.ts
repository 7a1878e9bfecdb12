/** Files with one secret, such as those that a container's platform mounts. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, type Stats, statSync } from 'node:fs'
import { passesUnseen } from './marks.js'

const MAX_BYTES = 64 * 1024

/** The secret without the line break at its end; or the end of a sentence that says why there is none. */
export type Secret = { readonly text: string } | { readonly fault: string; readonly passes?: boolean }

/** What was read from files that may be read only once, such as pipes. */
const readOnce = new Map<string, Secret>()

/** True if the file is none that could be read again: what was in it stays. */
export const isReadOnce = (file: string): boolean => readOnce.has(file)

/** Waits for the writer of a pipe, but not when it was read before. Never throws. */
export function readSecret(file: string): Secret {
  const known = readOnce.get(file)
  if (known !== undefined) return known
  try {
    const info = statSync(file)
    const secret = secretIn(file, info)
    if (!info.isFile() && 'text' in secret) readOnce.set(file, secret)
    return secret
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    return { fault: `cannot be read (${code})`, passes: passesUnseen(error) }
  }
}

/** Throws the file system's error. */
function secretIn(file: string, { size }: Stats): Secret {
  if (size > MAX_BYTES) return { fault: 'is larger than 64 KiB' }
  const bytes = readFileSync(file)
  if (!isUtf8(bytes) || bytes.includes(0)) return { fault: 'is not a text file' }
  const text = bytes.toString('utf8').replace(/\r?\n$/, '')
  // An empty file (such as a failed mount) must not mean "no key required".
  return text.trim() === '' ? { fault: 'is empty' } : { text }
}
