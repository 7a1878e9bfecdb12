/** The configuration's files: their paths and their contents. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { markOf, passesUnseen, policyNames } from './marks.js'
import { isReadOnce, PATIENCE_MS, readSecret, type Secret } from './secret-file.js'

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
type Content =
  | { readonly text: string }
  | {
      readonly fault: string
      /** True if another try may succeed although the file has not changed. */
      readonly passes?: boolean
    }

/** Everything that a load has read, as plain data. */
export interface FileContents {
  readonly texts: readonly (readonly [file: string, content: Content])[]
  /** Those of variables. */
  readonly secrets: readonly (readonly [file: string, secret: Secret])[]
  readonly folders: readonly (readonly [folder: string, names: readonly string[]])[]
}

/**
 * The files as one load sees them: each is read once. Created with the contents of another load, it returns what that
 * load read.
 */
export class ConfigFiles {
  readonly #texts: Map<string, Content>
  readonly #secrets: Map<string, Secret>
  readonly #folders: Map<string, readonly string[]>
  readonly #patienceMs: number
  /** True once something failed in a way that may pass although no file changes. */
  mayPass = false
  /** What was read from the disk, each with its mark from just before: a change during the read is noticed. */
  readonly sources = new Map<string, string>()

  /** @param isServing true for a process that others wait for: it does not wait long for the writer of a pipe */
  constructor(
    { texts, secrets, folders }: FileContents = { texts: [], secrets: [], folders: [] },
    isServing = false,
  ) {
    this.#patienceMs = isServing ? PATIENCE_MS.serving : PATIENCE_MS.starting
    this.#texts = new Map(texts)
    this.#secrets = new Map(secrets)
    this.#folders = new Map(folders)
  }

  get contents(): FileContents {
    return { texts: [...this.#texts], secrets: [...this.#secrets], folders: [...this.#folders] }
  }

  /** Text of at most 1 MiB. */
  text(file: string): Content {
    return this.#once(this.#texts, file, readText)
  }

  /** A file that a variable names. */
  secret(file: string): Secret {
    const secret = this.#once(this.#secrets, file, path => readSecret(path, this.#patienceMs))
    // To read a pipe changes its mark.
    if (isReadOnce(file)) this.sources.delete(file)
    return secret
  }

  /** The policy files of a folder. Throws the file system's error. */
  list(folder: string): readonly string[] {
    const names = this.#folders.get(folder) ?? this.#marked(folder, path => this.#names(path))
    this.#folders.set(folder, names)
    return names
  }

  #once(known: Map<string, Content>, file: string, read: (file: string) => Content): Content {
    const content = known.get(file) ?? this.#marked(file, read)
    if ('fault' in content) this.mayPass ||= content.passes === true
    known.set(file, content)
    return content
  }

  #marked<T>(path: string, read: (path: string) => T): T {
    this.sources.set(path, markOf(path))
    return read(path)
  }

  #names(folder: string): readonly string[] {
    try {
      return policyNames(folder)
    } catch (error) {
      this.mayPass ||= passesUnseen(error)
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
    return { fault: `The file cannot be read: ${reasonOf(error)}.${help}`, passes: passesUnseen(error) }
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
