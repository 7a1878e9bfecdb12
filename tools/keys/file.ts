/** Changes the file of API keys: whole or not at all, one command at a time. */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { releaseLock } from '../../config/file-lock.js'
import { reasonOf } from '../../config/files.js'
import { Failure } from '../../gateway/errors.js'
import { type ApiKey, MOST_FILE_BYTES, parseKeyFile } from '../../gateway/identify/api-keys/key-file.js'
import { readKeys } from '../../gateway/identify/api-keys/key-store.js'
import { takeLock } from './lock.js'

/** @throws {Failure} */
export function readKeyFile(file: string): readonly ApiKey[] {
  try {
    return readKeys(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Failure(`${file} cannot be used: ${code === undefined ? message : `${reasonOf(error)}.`}`)
  }
}

/** Replaces the keys by what `change` makes of them. @throws {Failure} */
export function changeKeyFile(file: string, change: (before: readonly ApiKey[]) => readonly ApiKey[]): void {
  try {
    const target = targetOf(file)
    const lock = `${target}.lock`
    const draft = takeLock(lock)
    try {
      const keys = change(readKeyFile(target))
      write(draft, `${JSON.stringify({ version: 1, keys }, undefined, 2)}\n`, target)
    } finally {
      releaseLock(draft)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    const { code, path, message } = error as NodeJS.ErrnoException
    throw new Failure(
      `${file} cannot be written: ${code === undefined ? message : `${reasonOf(error)} (${path ?? code}).`}`,
    )
  }
}

/** The file itself where `file` is a link: links stay. */
function targetOf(file: string): string {
  try {
    return realpathSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  try {
    return targetOf(resolve(dirname(file), readlinkSync(file)))
  } catch {
    return file // Does not exist yet.
  }
}

/** Writes through the lock's own file, which is gone when another command has taken over. */
function write(draft: string, text: string, target: string): void {
  if (text.length > MOST_FILE_BYTES) throw new Error(`it would have more than ${MOST_FILE_BYTES} bytes.`)
  parseKeyFile(text)
  try {
    const open = openSync(draft, 'r+')
    try {
      writeFileSync(open, text)
      keepAccess(open, target)
    } finally {
      closeSync(open)
    }
    renameSync(draft, target)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Failure('This command stood still, and another one took over: nothing was changed. Try again.')
  }
}

/** Who may read the keys stays as it was, as far as this user can give files away. */
function keepAccess(open: number, target: string): void {
  const before = statSync(target, { throwIfNoEntry: false })
  if (before === undefined) return
  for (const owner of [before.uid, process.getuid?.() ?? before.uid]) {
    try {
      fchownSync(open, owner, before.gid)
      break
    } catch {}
  }
  fchmodSync(open, before.mode & 0o7777)
}
