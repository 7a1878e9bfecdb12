/** The field lines of a head, `name: value` (RFC 9112 section 5). */
import { Fields } from '../message.js'
import { COLON, isBlank, isLineEnd, skip, TEXT, TOKEN, trimBlanks } from './grammar.js'
import { WireError } from './message.js'
import { lowerName } from './names.js'

/**
 * Parses the field lines of `head` from offset `from` to its end. Throws `bad-request` at the first invalid line.
 * Names and values are slices of `head`: a copy is needed to keep one without the whole head.
 */
export function parseFields(head: string, from: number): Fields {
  const raw: string[] = []
  const names: string[] = []
  for (let at = from; at < head.length; ) {
    const colon = skip(head, at, TOKEN)
    // This also rejects a blank before the colon and a folded line (RFC 9112 sections 5.1 and 5.2).
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

/** Fields from a flat list. */
export function fieldsOf(raw: readonly string[]): Fields {
  const names: string[] = []
  for (let i = 0; i < raw.length; i += 2) names.push(lowerName(raw[i] as string))
  return new Fields(raw, names)
}

/** True when the comma-separated list `value` contains `option`, which must be in lower case. */
export function listHas(value: string, option: string): boolean {
  if (value.length < option.length) return false
  const list = value.toLowerCase()
  if (list === option) return true
  return list.includes(option) && list.split(',').some(item => trimBlanks(item) === option)
}
