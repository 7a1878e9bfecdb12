/**
 * The languages of pages and messages. A language is a JSON file that maps English texts to its own, with `{1}` and so
 * on for variable parts; texts without an entry stay English, including a schema's own titles.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A language in which a request is answered. */
export interface Language {
  /** As in HTML's `lang` and Content-Language. */
  readonly tag: string
  say(text: string): string
}

export const ENGLISH: Language = { tag: 'en', say: text => text }

const FILE = /^([a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\.json$/
const MAX_FILE_BYTES = 1024 * 1024
/** Longer texts are unlikely to be our own. */
const MAX_TEXT = 2000
/** Longer parts are not split: alternatives are few and short. */
const MAX_PART = 200
const OR = ' or '
const MAX_RANGES = 20
/** The longest tag that anyone needs (RFC 5646 section 4.4.1): each of its prefixes is looked up. */
const MAX_TAG = 35

export class Languages {
  readonly #byTag = new Map<string, Language>([['en', ENGLISH]])

  /** Reads the `.json` files of the folders; later folders take precedence. Throws an Error with a sentence. */
  constructor(folders: readonly string[]) {
    const tables = new Map<string, Map<string, string>>()
    for (const folder of folders) {
      if (!existsSync(folder)) throw new Error(`the folder ${folder} (IDENTITY_LANGUAGES) does not exist`)
      for (const name of readdirSync(folder).sort()) {
        const [, tag] = FILE.exec(name) ?? []
        if (tag === undefined) continue
        tables.set(tag, new Map([...(tables.get(tag) ?? []), ...readTable(join(folder, name))]))
      }
    }
    for (const [tag, table] of tables) this.#byTag.set(tag.toLowerCase(), { tag, say: speaker(table) })
  }

  /**
   * The language that an Accept-Language field prefers; English when it names none of ours (RFC 9110 section 12.5.4).
   */
  choose(acceptLanguage: string | undefined): Language {
    for (const range of preferred(acceptLanguage ?? '')) {
      // A range falls back to its prefixes: Austrian German gets German.
      for (let tag = range; tag !== ''; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
        const language = this.#byTag.get(tag)
        if (language) return language
      }
    }
    return ENGLISH
  }
}

function preferred(field: string): string[] {
  const ranges = field
    .toLowerCase()
    .split(',', MAX_RANGES)
    .map(written => {
      const [tag = '', ...parameters] = written.split(';').map(part => part.trim())
      const weight = parameters.find(parameter => parameter.startsWith('q='))
      return { tag, quality: weight === undefined ? 1 : Number(weight.slice(2)) }
    })
  const liked = ranges.filter(
    ({ tag, quality }) => /^[a-z]/.test(tag) && tag.length <= MAX_TAG && quality > 0,
  )
  return liked.sort((a, b) => b.quality - a.quality).map(({ tag }) => tag)
}

function readTable(file: string): [string, string][] {
  if (statSync(file).size > MAX_FILE_BYTES) throw new Error(`${file} is larger than 1 MiB`)
  let table: unknown
  try {
    table = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`${file} is not valid JSON: ${(error as Error).message}`)
  }
  if (typeof table !== 'object' || table === null || Array.isArray(table)) {
    throw new Error(`${file} has to be an object from English texts to their translations`)
  }
  return Object.entries(table).map(([english, own]) => {
    const isWhole = typeof own === 'string' && own !== '' && places(english) === places(own)
    if (isWhole) return [english, own]
    throw new Error(
      `${file}: the text of "${english}" has to be a string with the same placeholders, such as {1}`,
    )
  })
}

const PLACE = /\{([1-9])\}/g

function places(text: string): string {
  return [...new Set(text.match(PLACE) ?? [])].sort().join()
}

interface Template {
  readonly parts: readonly string[]
  readonly numbers: readonly string[]
  readonly own: string
}

function speaker(table: ReadonlyMap<string, string>): Language['say'] {
  const templates = [...table]
    .filter(([english]) => places(english) !== '')
    .map(([english, own]): Template => {
      const numbers = [...english.matchAll(PLACE)].map(([, number]) => number as string)
      return { parts: english.split(/\{[1-9]\}/), numbers, own }
    })
  const or = table.get(OR) ?? OR

  /** Translates the text of a placeholder: a known text, or alternatives that are all known; otherwise undefined. */
  function sayPart(text: string): string | undefined {
    const known = table.get(text)
    if (known !== undefined || text.length > MAX_PART) return known
    for (let at = text.indexOf(OR); at > 0; at = text.indexOf(OR, at + 1)) {
      const first = table.get(text.slice(0, at))
      const others = first === undefined ? undefined : sayPart(text.slice(at + OR.length))
      if (others !== undefined) return first + or + others
    }
    return undefined
  }

  return function say(text: string): string {
    const known = table.get(text)
    if (known !== undefined || text.length > MAX_TEXT) return known ?? text
    for (const { parts, numbers, own } of templates) {
      const found = match(text, parts)
      if (!found) continue
      return own.replace(PLACE, (_, number: string) => {
        const part = found[numbers.indexOf(number)] ?? ''
        return sayPart(part) ?? part
      })
    }
    // Labels of list rows end in a number.
    const [, label, row] = /^(\S.*) (\d{1,4})$/.exec(text) ?? []
    const own = label === undefined ? undefined : table.get(label)
    return own === undefined ? text : `${own} ${row}`
  }
}

/** The texts at the placeholders, each as short as possible; undefined when the text does not match. */
function match(text: string, parts: readonly string[]): string[] | undefined {
  const [first = ''] = parts
  if (!text.startsWith(first)) return undefined
  const found: string[] = []
  let at = first.length
  for (const [index, part] of parts.slice(1).entries()) {
    const isLast = index === parts.length - 2
    const end = isLast ? text.length - part.length : text.indexOf(part, at)
    if (end < at || !text.startsWith(part, end)) return undefined
    found.push(text.slice(at, end))
    at = end + part.length
  }
  return found
}
