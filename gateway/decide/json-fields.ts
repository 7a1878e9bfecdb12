/**
 * The text fields of a JSON object, with every value of a repeated name: parsers differ in which one they keep, and some
 * ignore the case of names (Go's encoding/json). Reads whatever some upstream might read, including what strict parsers
 * refuse: one value too many only makes the request ambiguous, but a missed one would go uncounted.
 */
import { endOfText } from './json-text.js'
import { UNCLEAR } from './multipart-fields.js'

/**
 * The text values of a top-level field of the object that `text` begins with. What follows the object is ignored; an
 * object that is cut off has no fields. Never throws, and takes linear time.
 *
 * @param field its name in lowercase
 */
export function jsonField(text: string, field: string): (string | typeof UNCLEAR)[] {
  const values: string[] = []
  if (!text.trimStart().startsWith('{')) return values
  let depth = 0
  /** The last top-level string, as written, until a colon shows that it is a name. */
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
          // One failure is enough: throwing for many names would take long.
          if (read === UNCLEAR) return [UNCLEAR]
          name = read.toLowerCase()
        }
        break
      case ',':
        name = undefined
        break
      case '{':
      case '[':
        // Some upstreams take the only element of a list for the value.
        if (depth === 1 && name === field) return [UNCLEAR]
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

/** Resolves the escapes. With an invalid one, what an upstream reads is unclear. */
function unescaped(text: string): string | typeof UNCLEAR {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return UNCLEAR
  }
}
