/** Files with one secret, such as those that a container's platform mounts. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { passesUnseen } from './marks.js'

const MAX_BYTES = 64 * 1024

/** The secret without the line break at its end; or the end of a sentence that says why there is none. */
export type Secret = { readonly text: string } | { readonly fault: string; readonly passes?: boolean }

/** Never throws. */
export function readSecret(file: string): Secret {
  try {
    const { size } = statSync(file)
    if (size > MAX_BYTES) return { fault: 'is larger than 64 KiB' }
    const bytes = readFileSync(file)
    if (!isUtf8(bytes) || bytes.includes(0)) return { fault: 'is not a text file' }
    const text = bytes.toString('utf8').replace(/\r?\n$/, '')
    // An empty file (such as a failed mount) must not mean "no key required".
    return text.trim() === '' ? { fault: 'is empty' } : { text }
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    return { fault: `cannot be read (${code})`, passes: passesUnseen(error) }
  }
}
