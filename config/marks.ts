/** Whether files and folders have changed since they were read. */
import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of files and folders, existing or not, each with its mark from just before it was read. */
export type Sources = ReadonlyMap<string, string>

/** True if one of them is no longer as it was when it was read. */
export function hasChanged(sources: Sources): boolean {
  for (const [path, mark] of sources) if (markOf(path) !== mark) return true
  return false
}

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

/** A mark that changes when the file does, even if its size and its time of modification are kept. */
export function markOfFile({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [ino, size, mtimeMs, ctimeMs].join(' ')
}

/** A mark that changes when the file or folder at `path` does; links are followed. Never throws. */
export function markOf(path: string): string {
  try {
    const info = statSync(path)
    if (info.isDirectory()) return policyNames(path).join('\n')
    return markOfFile(info)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}

/** Codes of failures that a mark shows: it changes when they are over. */
const SHOWN = ['ENOENT', 'EACCES', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG']

/** True if reading may succeed later although no mark changes: too many files were open, a disk failed for a moment. */
export function passesUnseen(error: unknown): boolean {
  return !SHOWN.includes((error as NodeJS.ErrnoException).code ?? '')
}
