/**
 * Text fields of a JSON object, with every value that a name has: parsers differ in which of several they keep, and some
 * take names in any letter case (Go's encoding/json). Reads whatever any upstream might read, also what strict parsers
 * refuse: a value too many shows up as a disagreement, a value too few would go uncounted.
 */
import { UNCLEAR } from './multipart-fields.js'

/**
 * The text values of a field at the top of the object that `text` begins with; what follows the object is ignored, and
 * one that is cut off has no fields. Never throws, and reads each character a fixed number of times.
 *
 * @param field its name in lowercase
 */
export function jsonField(text: string, field: string): (string | typeof UNCLEAR)[] {
  const values: string[] = []
  if (!text.trimStart().startsWith('{')) return values
  let depth = 0
  /** The last text at the top, as it is written, until a colon makes it the name of the next. */
  let last: string | undefined
  let name: string | undefined
  for (let i = 0; i < text.length; i += 1) {
    switch (text[i]) {
      case '"': {
        const end = endOfText(text, i + 1)
        if (depth === 1) {
          last = text.slice(i + 1, end)
          if (name === field) {
            const value = unescaped(last)
            if (value === UNCLEAR) return [UNCLEAR]
            values.push(value)
          }
        }
        i = end
        break
      }
      case ':':
        if (depth === 1 && last !== undefined) {
          const read = unescaped(last)
          last = undefined
          // One failure tells enough: to go on after many would take long.
          if (read === UNCLEAR) return [UNCLEAR]
          name = read.toLowerCase()
        }
        break
      case ',':
        name = undefined
        break
      case '{':
      case '[':
        depth += 1
        break
      case '}':
      case ']':
        depth -= 1
        if (depth === 0) return values
    }
  }
  return []
}

/** Where the quotation mark stands that ends a text; the end of `text` if there is none. */
function endOfText(text: string, from: number): number {
  let i = from
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1
  return i
}

/** Undoes the escapes; a wrong one leaves unclear what an upstream reads. */
function unescaped(text: string): string | typeof UNCLEAR {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return UNCLEAR
  }
}
