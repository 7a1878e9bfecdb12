/** The configuration's files: where they are, and their text. */
import { readFileSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'

const MAX_FILE_BYTES = 1024 * 1024

/** gateway.yaml, which `path` names by itself or by its folder. */
export function gatewayFileOf(path: string): string {
  try {
    return statSync(path).isDirectory() ? join(path, 'gateway.yaml') : path
  } catch {
    return path // Reading it tells what is wrong.
  }
}

/** A file or folder as gateway.yaml names it. */
export function fileBeside(gatewayFile: string, named: string): string {
  return isAbsolute(named) ? named : join(dirname(gatewayFile), named)
}

/** Text of at most 1 MiB, or what is wrong with the file as a sentence. */
export function readText(file: string): { text: string } | { fault: string } {
  try {
    const info = statSync(file)
    if (!info.isFile()) return { fault: `${basename(file)} is not a file.` }
    if (info.size > MAX_FILE_BYTES) return { fault: 'The file is larger than 1 MiB.' }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)) }
  } catch (error) {
    if (error instanceof TypeError) return { fault: 'The file is not valid UTF-8 text.' }
    return { fault: `The file cannot be read: ${reasonOf(error)}.` }
  }
}

/** Why the file system refused, as the end of a sentence. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
  return REASONS[code] ?? code
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'access to it is denied',
  ENOTDIR: 'it is not a folder',
  EISDIR: 'it is a folder',
}
