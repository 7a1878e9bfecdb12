/** The configuration's files: their paths and their contents, and whether they have changed since they were read. */
import { existsSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'

const MAX_FILE_BYTES = 1024 * 1024

/** The path of gateway.yaml; `path` is the file itself or its folder. */
export function gatewayFileOf(path: string): string {
  try {
    return statSync(path).isDirectory() ? join(path, 'gateway.yaml') : path
  } catch {
    return path // Reading the file will report what is wrong.
  }
}

/** Path of a file or folder named in gateway.yaml, resolved against the folder of gateway.yaml. */
export function fileBeside(gatewayFile: string, named: string): string {
  return isAbsolute(named) ? named : join(dirname(gatewayFile), named)
}

/** A file's text, or a sentence that says what is wrong with it. */
type Content = { readonly text: string } | { readonly fault: string }

/** Everything that a load has read, as plain data. */
export interface FileContents {
  readonly texts: readonly (readonly [file: string, content: Content])[]
  readonly folders: readonly (readonly [folder: string, names: readonly string[]])[]
}

/**
 * The files as one load sees them: each is read once. Created with the contents of another load, it returns what that
 * load read.
 */
export class ConfigFiles {
  readonly #texts: Map<string, Content>
  readonly #folders: Map<string, readonly string[]>
  /** True once a file or folder could not be read. */
  hasFaults = false

  constructor({ texts, folders }: FileContents = { texts: [], folders: [] }) {
    this.#texts = new Map(texts)
    this.#folders = new Map(folders)
  }

  get contents(): FileContents {
    return { texts: [...this.#texts], folders: [...this.#folders] }
  }

  /** Text of at most 1 MiB. */
  text(file: string): Content {
    const content = this.#texts.get(file) ?? readText(file)
    if ('fault' in content) this.hasFaults = true
    this.#texts.set(file, content)
    return content
  }

  /** The policy files of a folder. Throws the file system's error. */
  list(folder: string): readonly string[] {
    const names = this.#folders.get(folder) ?? this.#read(folder)
    this.#folders.set(folder, names)
    return names
  }

  #read(folder: string): readonly string[] {
    try {
      return policyNames(folder)
    } catch (error) {
      this.hasFaults = true
      throw error
    }
  }
}

/** Text of at most 1 MiB, or what is wrong with the file as a sentence. */
export function readText(file: string): Content {
  try {
    const info = statSync(file)
    if (!info.isFile())
      return { fault: `${basename(file)} is ${info.isDirectory() ? 'a folder' : 'not a file'}.` }
    if (info.size > MAX_FILE_BYTES)
      return { fault: 'The file is larger than 1 MiB. Policies may be split into several files.' }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)) }
  } catch (error) {
    if (error instanceof TypeError) return { fault: 'The file is not valid UTF-8 text. Save it as UTF-8.' }
    const other = file.replace(/\.yaml$/, '.yml')
    const help = other !== file && existsSync(other) ? ` Rename ${basename(other)}: only *.yaml is read.` : ''
    return { fault: `The file cannot be read: ${reasonOf(error)}.${help}` }
  }
}

/** Why a file operation failed, as the end of a sentence. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
  return REASONS[code] ?? code
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'access to it is denied',
  ENOTDIR: 'it is not a folder',
  EISDIR: 'it is a folder',
  EEXIST: 'something else is there',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  ENAMETOOLONG: 'the name is too long',
}

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
function policyNames(folder: string): string[] {
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
