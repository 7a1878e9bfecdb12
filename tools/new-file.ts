/** Creates files and folders, and never overwrites any. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { unwritable } from './unreadable.js'

/** Writes a file that does not exist yet, and creates its folders. @throws {Unusable} */
export function writeNew(file: string, text: string): void {
  makeFolders(dirname(file))
  attempt(file, () => writeFileSync(file, text, { flag: 'wx' }))
}

/** Creates a folder that does not exist yet. @throws {Unusable} */
export function makeNew(folder: string): void {
  attempt(folder, () => mkdirSync(folder))
}

/** One by one: Node's recursive mkdir never returns where a file system cannot create folders, as below /proc. */
function makeFolders(folder: string): void {
  if (existsSync(folder)) return
  const above = dirname(folder)
  if (above !== folder) makeFolders(above)
  try {
    mkdirSync(folder)
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(folder)) throw unwritable(folder, error)
  }
}

function attempt(name: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    throw unwritable(name, error)
  }
}
