/** Settings from environment variables, or from files. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'

const MAX_BYTES = 64 * 1024

/**
 * `env`, in which `NAME` may also come from the file that `NAME_FILE` names. Reading a variable throws an Error with a
 * sentence when both are set, or when the file cannot be read or is empty.
 */
export function withFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return new Proxy(env, { get: (_, name) => (typeof name === 'string' ? lookUp(env, name) : undefined) })
}

function lookUp(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const set = env[name]
  const file = env[`${name}_FILE`]
  if (!file) return set
  if (set) throw new Error(`Both ${name} and ${name}_FILE are set: set only one of them`)
  const bytes = read(file, name)
  if (!isUtf8(bytes) || bytes.includes(0))
    throw new Error(`The file named by ${name}_FILE is not a text file`)
  const text = bytes.toString('utf8').replace(/\r?\n$/, '')
  // An empty file (such as a failed mount) must not mean "no key required".
  if (text.trim() === '') throw new Error(`The file named by ${name}_FILE is empty`)
  return text
}

function read(file: string, name: string): Buffer {
  try {
    if (statSync(file).size <= MAX_BYTES) return readFileSync(file)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new Error(`The file named by ${name}_FILE cannot be read (${reason})`)
  }
  throw new Error(`The file named by ${name}_FILE is larger than 64 KiB`)
}

/** A variable that holds a whole number; `unset` when it is not set. Throws an Error with a sentence. */
export function wholeNumber(
  env: NodeJS.ProcessEnv,
  name: string,
  { unit, largest, unset = 0 }: { readonly unit: string; readonly largest: number; readonly unset?: number },
): number {
  const text = env[name]
  if (text === undefined || text === '') return unset
  const number = /^\d{1,9}$/.test(text) ? Number(text) : largest + 1
  if (number > largest) throw new Error(`${name} must be a whole number of ${unit}, at most ${largest}`)
  return number
}
