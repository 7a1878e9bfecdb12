/** The files that a load has read, and whether they have changed since. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of files and folders, existing or not, each with its mark from just before it was read. */
export type Sources = ReadonlyMap<string, string>

/** True for names of files that are read, or probably meant to be. */
function isPolicyName(name: string): boolean {
  // Names that begin with a dot are an editor's, or the links a Kubernetes volume swaps.
  return !name.startsWith('.') && /\.ya?ml$/i.test(name)
}

/**
 * The policy files of a folder, as paths within it and sorted. Those of folders in it are not read, but probably meant to
 * be. Throws the file system's error.
 */
export function policyNames(folder: string): string[] {
  const names = readdirSync(folder)
  return [...names, ...names.flatMap(name => namesWithin(folder, name))].filter(isPolicyName).sort()
}

/** What is wrong with one of `policyNames`, as a sentence; undefined if the file is read. */
export function whyNotRead(name: string): string | undefined {
  if (name.includes('/'))
    return 'Files in a folder within the policies folder are not read. Move this one up.'
  return name.endsWith('.yaml') ? undefined : 'Only *.yaml files are read. Rename this one.'
}

function namesWithin(folder: string, name: string): string[] {
  try {
    const inner = join(folder, name)
    if (!statSync(inner).isDirectory()) return []
    return readdirSync(inner).flatMap(file => (isPolicyName(file) ? `${name}/${file}` : []))
  } catch {
    return [] // Such as the lost+found of a volume.
  }
}

/** A mark that changes when the file or folder at `path` does; links are followed. Never throws. */
export function markOf(path: string): string {
  try {
    const info = statSync(path)
    if (info.isDirectory()) return policyNames(path).join('\n')
    return [info.ino, info.size, info.mtimeMs, info.ctimeMs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
