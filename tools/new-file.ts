/** Files and folders that a command makes, and never overwrites. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { unwritable } from './unreadable.js'

/** Writes a file that does not exist yet, in folders that are made for it. @throws {Unusable} */
export function writeNew(file: string, text: string): void {
  makeFolders(dirname(file))
  attempt(file, () => writeFileSync(file, text, { flag: 'wx' }))
}

/** Makes a folder that does not exist yet. @throws {Unusable} */
export function makeNew(folder: string): void {
  attempt(folder, () => mkdirSync(folder))
}

/** One by one: Node's recursive mkdir never returns where a file system makes no folders, as below /proc. */
function makeFolders(folder: string): void {
  if (existsSync(folder)) return
  const above = dirname(folder)
  if (above !== folder) makeFolders(above)
  try {
    mkdirSync(folder)
  } catch (error) {
    // Another command may have made it just now.
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
