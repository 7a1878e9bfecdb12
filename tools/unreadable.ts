/** Errors for files that cannot be read or written. */
import { reasonOf } from '../config/files.js'
import { Unusable } from './command.js'

/** @param error as Node's file functions throw it */
export function unreadable(name: string, error: unknown): Unusable {
  return new Unusable(`${name} cannot be read: ${reasonOf(error)}.`)
}

/** @param error as Node's file functions throw it */
export function unwritable(name: string, error: unknown): Unusable {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EEXIST') return new Unusable(`${name} already exists. Remove it, or choose another name.`)
  const reason = code === 'ENOENT' ? 'nothing can be created there' : reasonOf(error)
  return new Unusable(`${name} cannot be written: ${reason}.`)
}
