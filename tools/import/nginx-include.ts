/** nginx's `include`: replaces it by the contents of other files (nginx.org, ngx_core_module, 'include'). */
import { readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Unusable } from '../command.js'
import type { Migration } from './migration.js'
import { type Directive, parseNginx } from './nginx-text.js'

/** The file given to the command, and a function that reads it and others. */
export interface NamedFile {
  readonly file: string
  /** @throws {Unusable} when the file cannot be read */
  read(file: string): string
}

const MOST_FILES = 1000
/** Files that nginx is delivered with, in which nothing is guarded. */
const HARMLESS = /(?:^|\/)(?:mime\.types|(?:fastcgi|uwsgi|scgi|proxy)_params|fastcgi\.conf|koi-\w+|win-utf)$/

export class Includes {
  readonly #into: Migration
  readonly #main: NamedFile
  #files = 0

  constructor(into: Migration, main: NamedFile) {
    this.#into = into
    this.#main = main
  }

  /** The directives, including those of included files; an `include` that cannot be read stays. @throws {NginxFault} if one of them is not valid */
  expand(directives: readonly Directive[], within = [resolve(this.#main.file)]): Directive[] {
    return directives.flatMap(one => {
      if (one.name === 'include') return this.#included(one, within)
      return one.block === undefined ? one : { ...one, block: this.expand(one.block, within) }
    })
  }

  #included(one: Directive, within: string[]): Directive[] {
    const [pattern = ''] = one.words
    // Relative to the main file, wherever the directive is.
    const files = matching(resolve(dirname(this.#main.file), pattern))
    if (files.length === 0) this.#into.leftOut(one, `"include ${pattern}". There is no such file here.`)
    const unread = HARMLESS.test(pattern) ? [] : [one]
    return files.flatMap(file => {
      this.#files += 1
      if (within.includes(file) || this.#files > MOST_FILES) {
        this.#into.leftOut(one, `"include ${pattern}". It includes itself, or too many files.`)
        return unread
      }
      try {
        return this.expand(parseNginx(this.#main.read(file), file), [...within, file])
      } catch (error) {
        if (!(error instanceof Unusable)) throw error
        this.#into.leftOut(one, `"include ${pattern}". ${error.message}`)
        return unread
      }
    })
  }
}

/** Files that match a path with `*` and `?`; the path itself when it contains neither. */
function matching(path: string): string[] {
  let found = ['/']
  for (const part of path.split('/').filter(text => text !== '')) {
    if (!/[*?]/.test(part)) found = found.map(folder => join(folder, part))
    else {
      found = found.flatMap(folder =>
        namesIn(folder)
          .filter(name => name[0] !== '.' && fits(name, part))
          .map(name => join(folder, name)),
      )
    }
  }
  return found
}

/** True if `name` is one of those that `shape` stands for. Goes back to the last `*` alone, which is enough. */
function fits(name: string, shape: string): boolean {
  let at = 0
  let star = -1
  /** Where the text that the last `*` stands for ends. */
  let end = 0
  for (let i = 0; i < name.length; ) {
    if (shape[at] === '*') {
      star = at
      at += 1
      end = i
    } else if (shape[at] === '?' || shape[at] === name[i]) {
      at += 1
      i += 1
    } else if (star >= 0) {
      at = star + 1
      end += 1
      i = end
    } else return false
  }
  return shape.slice(at).replaceAll('*', '') === ''
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}
