/** Walks through the text of valid JSON, where the text itself matters: repeated names, and numbers as they are written. */

/** A member of an object: its name, with escapes resolved, and its value as written. */
export interface Member {
  readonly name: string
  readonly value: string
}

/** The members of an object, repeated names included. Linear in its length. */
export function membersOf(object: string): Member[] {
  const members: Member[] = []
  for (let at = startOf(object, 1); object[at] !== '}'; ) {
    const nameEnd = endOfText(object, at + 1) + 1
    const start = startOf(object, nameEnd)
    const end = endOfValue(object, start)
    members.push({ name: textOf(object.slice(at, nameEnd)), value: object.slice(start, end) })
    at = startOf(object, end)
  }
  return members
}

/** All values of a name, in any letter case: upstreams differ in which one they take, and some ignore the case. */
export function valuesOf(members: readonly Member[], name: string): string[] {
  return members.filter(one => isAlike(one.name, name)).map(({ value }) => value)
}

/** True for names that are equal to an upstream that ignores case: Go takes ſ for s, and the sign of the kelvin for k. */
function isAlike(one: string, name: string): boolean {
  return one === name || (one.length === name.length && folded(one) === folded(name))
}

function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** The elements of a list, as written: `most` at most, and the number of all. Linear in its length. */
export function elementsOf(list: string, most: number): { elements: string[]; length: number } {
  const elements: string[] = []
  let length = 0
  for (let at = startOf(list, 1); list[at] !== ']'; ) {
    const end = endOfValue(list, at)
    if (length < most) elements.push(list.slice(at, end))
    length += 1
    at = startOf(list, end)
  }
  return { elements, length }
}

/** True if more than `most` objects and lists are nested. The text need not be valid. */
export function isDeeperThan(text: string, most: number): boolean {
  let depth = 0
  for (let i = 0; i < text.length && depth <= most; i += 1) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) i = endOfText(text, i + 1)
    else if (code === BRACE || code === BRACKET) depth += 1
    else if (code === BRACE_END || code === BRACKET_END) depth -= 1
  }
  return depth > most
}

/** Resolves the escapes of a string as written, with its quotation marks. */
export function textOf(written: string): string {
  return written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1)
}

/** Index of the quotation mark that ends a string; at least the length of `text` if there is none. */
export function endOfText(text: string, from: number): number {
  let i = from
  while (i < text.length && text.charCodeAt(i) !== QUOTE) i += text.charCodeAt(i) === BACKSLASH ? 2 : 1
  return i
}

export const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
export const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d]
const SPACE = 0x20

/** Index of what follows blanks, and the comma or colon among them. */
function startOf(text: string, from: number): number {
  let i = from
  for (; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code > SPACE && code !== COMMA && code !== COLON) break
  }
  return i
}

function endOfValue(text: string, from: number): number {
  let depth = 0
  for (let i = from; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = endOfText(text, i + 1)
      if (depth === 0) return i + 1
    } else if (code === BRACE || code === BRACKET) depth += 1
    else if (code === BRACE_END || code === BRACKET_END) {
      // The end of what holds a number or a word.
      if (depth === 0) return i
      depth -= 1
      if (depth === 0) return i + 1
    } else if (depth === 0 && (code === COMMA || code <= SPACE)) return i
  }
  return text.length
}
