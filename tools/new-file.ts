/** Creates files and folders, and never overwrites any. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../services/storage/data-folder.js'
import { unwritable } from './unreadable.js'

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
