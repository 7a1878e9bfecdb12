/** The lines between the first of a head and its end: `name: value`, one field each (RFC 9112 section 5). */
import { Fields } from '../message.js'
import { COLON, isBlank, isLineEnd, skip, TEXT, TOKEN } from './grammar.js'
import { WireError } from './message.js'
import { lowerName } from './names.js'

/**
 * Reads the lines of `head` from `from` to its end. Throws `bad-request` at the first that is none. Names and values are
 * slices: who keeps one beyond its message keeps the whole head, unless as a copy.
 */
export function parseFields(head: string, from: number): Fields {
  const raw: string[] = []
  const names: string[] = []
  for (let at = from; at < head.length; ) {
    const colon = skip(head, at, TOKEN)
    // A blank before the colon, or a folded line, is refused here (RFC 9112 sections 5.1 and 5.2).
    if (colon === at || head.charCodeAt(colon) !== COLON) throw new WireError('bad-request', 'a field’s name')
    let begin = colon + 1
    while (isBlank(head.charCodeAt(begin))) begin++
    const lineEnd = skip(head, begin, TEXT)
    if (!isLineEnd(head, lineEnd)) throw new WireError('bad-request', 'a field’s value')
    let end = lineEnd
    while (end > begin && isBlank(head.charCodeAt(end - 1))) end--
    const name = head.slice(at, colon)
    raw.push(name, head.slice(begin, end))
    names.push(lowerName(name))
    at = lineEnd + 2
  }
  return new Fields(raw, names)
}

/** Makes the fields of a flat list. */
export function fieldsOf(raw: readonly string[]): Fields {
  const names: string[] = []
  for (let i = 0; i < raw.length; i += 2) names.push(lowerName(raw[i] as string))
  return new Fields(raw, names)
}

/** True when the comma-separated list `value` holds `option`, which is in lower case. */
export function listHas(value: string, option: string): boolean {
  if (value.length < option.length) return false
  const list = value.toLowerCase()
  if (list === option) return true
  return list.includes(option) && list.split(',').some(item => item.trim() === option)
}
