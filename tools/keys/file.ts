/** Changes the file of API keys: whole or not at all, one command at a time. */
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { Failure } from '../../gateway/errors.js'
import type { ApiKey } from '../../gateway/identify/api-keys/key-file.js'
import { readKeys } from '../../gateway/identify/api-keys/key-store.js'

/** A lock that is older was left behind by a command that was killed. */
const STALE_MS = 10_000

/** @throws {Failure} */
export function readKeyFile(file: string): readonly ApiKey[] {
  try {
    return readKeys(file)
  } catch (error) {
    throw new Failure(`${file} cannot be used: ${(error as Error).message}`)
  }
}

/** Replaces the file by what `change` makes of it. @throws {Failure} */
export function changeKeyFile(file: string, change: (before: readonly ApiKey[]) => readonly ApiKey[]): void {
  const lock = `${file}.lock`
  takeLock(lock)
  try {
    const next = `${file}.new`
    const keys = change(readKeyFile(file))
    writeFileSync(next, `${JSON.stringify({ version: 1, keys }, undefined, 2)}\n`, {
      mode: existsSync(file) ? statSync(file).mode : 0o644,
    })
    renameSync(next, file)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(`${file} cannot be written: ${(error as Error).message}.`)
  } finally {
    rmSync(lock, { force: true })
  }
}

function takeLock(lock: string): void {
  for (let tries = 0; ; tries += 1) {
    try {
      closeSync(openSync(lock, 'wx'))
      return
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== 'EEXIST') throw new Failure(`${lock} cannot be made: ${message}.`)
      const isStale = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? 0) > STALE_MS
      if (isStale) rmSync(lock, { force: true })
      else if (tries > 100)
        throw new Failure(`Another command is changing the keys. If none is, remove ${lock}.`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    }
  }
}
