/** Finds a number by its path in the last bytes of a response: in its JSON, or in its last server-sent event. */

import {
  BACKSLASH,
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  COLON,
  COMMA,
  endOfText,
  QUOTE,
} from '../json-text.js'

/** The end of a text, and whether that is all of it. */
export interface Tail {
  readonly text: string
  readonly isWhole: boolean
}

type JsonPath = readonly string[]

/**
 * The value at `path` of the object that ends the text, as a whole number; undefined if there is none, or its outermost
 * member begins before the tail. Linear in the length of the tail.
 */
export function numberInJson({ text, isWhole }: Tail, path: JsonPath): number | undefined {
  if (isWhole) return numberAt(parsed(text), path)
  const [first = '', ...rest] = path
  // The tail may begin within a string, or outside of one. Only one of the two readings is valid JSON; if both seem to
  // be, nothing is certain.
  const read = [true, false].flatMap(inString => lastMember(text, first, inString) ?? [])
  const [member] = read
  if (member === undefined || read.length > 1) return undefined
  return numberAt(parsed(member), rest)
}

/** The whole number at `path` of the last server-sent event that has one (HTML, 'Server-sent events', 9.2.6). */
export function numberInEvents({ text, isWhole }: Tail, path: JsonPath): number | undefined {
  const lines = text.split(/\r\n|\n|\r/)
  // The first line may be cut off, and so may its event.
  const begin = isWhole ? 0 : lines.indexOf('') + 1
  let data: string[] = []
  for (let i = lines.length - 1; i >= begin; i -= 1) {
    const line = lines[i] as string
    if (line.startsWith('data:')) data.push(line.slice('data:'.length))
    if (line !== '' && i > begin) continue
    const found = data.length === 0 ? undefined : numberAt(parsed(data.reverse().join('\n')), path)
    if (found !== undefined) return found
    data = []
  }
  return undefined
}

/** A whole number from 0; undefined for anything else, and for numbers that are not exact. */
function numberAt(value: unknown, path: JsonPath): number | undefined {
  let at = value
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[name]
  }
  return Number.isSafeInteger(at) && (at as number) >= 0 ? (at as number) : undefined
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/**
 * The text of the last member called `name` of the outermost object, which the tail ends; undefined if it is not in the
 * tail, or the tail is no JSON under the assumption of how it begins.
 */
function lastMember(tail: string, name: string, beginsInString: boolean): string | undefined {
  /** Members of that name, each with its depth below the beginning of the tail. */
  const members: { readonly from: number; to: number; readonly depth: number }[] = []
  let open: (typeof members)[number] | undefined
  let depth = 0
  let i = beginsInString ? endOfText(tail, 0) + 1 : 0
  for (; i < tail.length; i += 1) {
    const code = tail.charCodeAt(i)
    if (code === BACKSLASH) return undefined
    if (code === QUOTE) {
      const end = endOfText(tail, i + 1)
      if (end >= tail.length) return undefined
      const next = skipBlanks(tail, end + 1)
      const isNamed = tail.charCodeAt(next) === COLON && tail.slice(i + 1, end) === name
      if (isNamed && (open === undefined || open.depth >= depth)) {
        open = { from: next + 1, to: tail.length, depth }
        members.push(open)
      }
      i = end
    } else if (code === BRACE || code === BRACKET) depth += 1
    else if (code === BRACE_END || code === BRACKET_END) {
      if (open?.depth === depth) {
        open.to = i
        open = undefined
      }
      depth -= 1
    } else if (code === COMMA && open?.depth === depth) {
      open.to = i
      open = undefined
    }
  }
  const last = members.findLast(member => member.depth === depth + 1)
  return last && tail.slice(last.from, last.to)
}

function skipBlanks(text: string, from: number): number {
  let i = from
  while (i < text.length && text.charCodeAt(i) <= 0x20) i += 1
  return i
}
