/** What a load looked at: tells later, without loading again, whether another load could find something else. */
import { readdirSync, statSync } from 'node:fs'

/** Paths of files and folders, there or not, each with what it was like just before it was read. */
export type Sources = ReadonlyMap<string, string>

/** True for what is read in the folder of policies, and for what a person meant to be. */
export function isPolicyName(name: string): boolean {
  // Names that begin with a dot are an editor's, or the links a Kubernetes volume swaps.
  return !name.startsWith('.') && /\.ya?ml$/.test(name)
}

/** What the file or folder at `path` is like now; links are followed. Never throws. */
export function markOf(path: string): string {
  try {
    const info = statSync(path)
    if (info.isDirectory()) return readdirSync(path).filter(isPolicyName).sort().join('/')
    return [info.ino, info.size, info.mtimeMs, info.ctimeMs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
