/** The files that a load has read, and whether they have changed since. */
import { readdirSync, statSync } from 'node:fs'

/** Paths of files and folders, existing or not, each with its mark from just before it was read. */
export type Sources = ReadonlyMap<string, string>

/** True for files of the policies folder that are read, or probably meant to be. */
export function isPolicyName(name: string): boolean {
  // Names that begin with a dot are an editor's, or the links a Kubernetes volume swaps.
  return !name.startsWith('.') && /\.ya?ml$/i.test(name)
}

/** A mark that changes when the file or folder at `path` does; links are followed. Never throws. */
export function markOf(path: string): string {
  try {
    const info = statSync(path)
    if (info.isDirectory()) return readdirSync(path).filter(isPolicyName).sort().join('/')
    return [info.ino, info.size, info.mtimeMs, info.ctimeMs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
