/**
 * The key part of JSON-RPC requests (https://www.jsonrpc.org/specification), Model Context Protocol among them: which
 * method is called, or which tool, and how often.
 */
import type { Calls, Facts } from '../types.js'
import { isUnreadable } from './body-kind.js'
import { isCut, jsonIn } from './json-body.js'
import { elementsOf, membersOf, textOf, valuesOf } from './json-text.js'

/** A batch of more is not read. */
export const MOST_CALLS = 1000
/** A longer method or tool is none. */
const LONGEST_NAME = 256
/** A longer id is answered with null. */
const LONGEST_ID = 256

const BATCH = '(batch)'
const UNREADABLE = '(unreadable)'
const NULL = 'null'

/** The method of the Model Context Protocol whose calls count by their tool. */
const TOOL_CALL = 'tools/call'

/** Of a request without a body, and of whatever is surely no batch. */
export const NO_CALL: Calls = { name: UNREADABLE, count: 1, isBatch: false, ids: undefined }

/** The beginning of a list, also in UTF-16, and behind a byte order mark. */
const LIKE_LIST = /^[\s\0\uFEFF\uFFFD]*\[/
/** As much as may come before it. */
const BEFORE_LIST = /^[\s\0\uFEFF\uFFFD]*$/
/** Some upstreams end a text at NUL, leave out control characters, or replace half of a surrogate pair. */
const ODD = /[\p{Cc}\p{Cs}\uFFFD]/u

/**
 * What a request calls: its method, of `tools/call` the tool, too. Whatever upstreams may read in different ways is
 * unreadable, so that they all share one counter: a client gets a single one more by it, not one with each spelling.
 * For the same reason letter case and surrounding blanks of names do not count. Never throws, and takes linear time.
 *
 * @param prefix the first bytes of the body
 * @param isLate true if the rest of the body had not arrived in time
 */
export function callsIn(facts: Facts, prefix: Buffer, isLate: boolean): Calls {
  const value = jsonIn(facts, prefix, isLate)
  // Nobody knows how many calls there are in what cannot be read, so it costs as much as the largest batch.
  if (value === undefined) return mayBeList(facts, prefix, isLate) ? unreadable(MOST_CALLS) : NO_CALL
  if (value.startsWith('[')) return batchOf(value)
  const call = callOf(value)
  if (call === undefined) return NO_CALL
  return { name: call.name, count: 1, isBatch: false, ids: call.id === undefined ? [] : [call.id] }
}

function mayBeList(facts: Facts, prefix: Buffer, isLate: boolean): boolean {
  if (isUnreadable(facts, prefix)) return true
  const text = prefix.toString('utf8')
  return LIKE_LIST.test(text) || (isCut(prefix, isLate) && BEFORE_LIST.test(text))
}

/** What an operator names: a method, or a method and its tool, as `explain` shows it. */
export function callNamed(name: string): Calls {
  return { ...NO_CALL, name: plain(name) }
}

interface Call {
  readonly name: string
  /** As written; undefined if nobody waits for an answer. */
  readonly id: string | undefined
}

function batchOf(list: string): Calls {
  const { elements, length } = elementsOf(list, MOST_CALLS)
  const count = Math.min(Math.max(1, length), MOST_CALLS)
  if (length === 0 || length > MOST_CALLS) return unreadable(count)
  const calls: Call[] = []
  for (const element of elements) {
    const call = element.startsWith('{') ? callOf(element) : undefined
    if (call === undefined) return unreadable(count)
    calls.push(call)
  }
  const [{ name }] = calls as [Call]
  const ids = calls.flatMap(({ id }) => (id === undefined ? [] : [id]))
  return { name: calls.every(call => call.name === name) ? name : BATCH, count, isBatch: true, ids }
}

function unreadable(count: number): Calls {
  return { ...NO_CALL, count }
}

/** Undefined if it is no call, or it is unclear of what. */
function callOf(object: string): Call | undefined {
  const members = membersOf(object)
  const method = sameName(valuesOf(members, 'method'))
  if (method === undefined) return undefined
  const id = idOf(valuesOf(members, 'id'))
  if (method !== TOOL_CALL) return { name: method, id }
  const params = valuesOf(members, 'params')
  if (params.some(one => !one.startsWith('{'))) return undefined
  const tool = sameName(params.flatMap(one => valuesOf(membersOf(one), 'name')))
  return tool === undefined ? undefined : { name: `${TOOL_CALL}:${tool}`, id }
}

/** The text that all of the values are; undefined if one is no text, or another. */
function sameName(values: readonly string[]): string | undefined {
  let found: string | undefined
  for (const value of values) {
    if (!value.startsWith('"')) return undefined
    const name = plain(textOf(value))
    if (found !== undefined && name !== found) return undefined
    if (name === '' || name.length > LONGEST_NAME || ODD.test(name)) return undefined
    found = name
  }
  return found
}

function plain(name: string): string {
  return name.trim().toLowerCase()
}

function idOf(values: readonly string[]): string | undefined {
  const [id] = values
  if (id === undefined) return undefined
  const isClear = values.length === 1 && id.length <= LONGEST_ID && !/^[{[tf]/.test(id)
  // A copy, as part of a text keeps all of it in memory.
  return isClear ? Buffer.from(id).toString() : NULL
}
