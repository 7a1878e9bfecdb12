/** Files that commands read and create: what to say about those they cannot, and no file is ever overwritten. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { reasonOf } from '../config/files.js'
import { makeFolder } from '../services/storage/data-folder.js'
import { Unusable } from './command.js'

/** Writes a file that does not exist yet, and creates its folders. @throws {Unusable} */
export function writeNew(file: string, text: string): void {
  attempt(dirname(file), () => makeFolder(dirname(file)))
  attempt(file, () => writeFileSync(file, text, { flag: 'wx' }))
}

/** Creates a folder that does not exist yet. @throws {Unusable} */
export function makeNew(folder: string): void {
  attempt(folder, () => mkdirSync(folder))
}

function attempt(name: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    throw unwritable(name, error)
  }
}

/** @param error as Node's file functions throw it */
export function unreadable(name: string, error: unknown): Unusable {
  return new Unusable(`${name} cannot be read: ${reasonOf(error)}.`)
}

/** @param error as Node's file functions throw it */
function unwritable(name: string, error: unknown): Unusable {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EEXIST') return new Unusable(`${name} already exists. Remove it, or choose another name.`)
  const reason = code === 'ENOENT' ? 'nothing can be created there' : reasonOf(error)
  return new Unusable(`${name} cannot be written: ${reason}.`)
}
