/** A body of JSON, as far as rules may read it. */
import { isUtf8 } from 'node:buffer'
import type { Facts } from '../types.js'
import { isUnreadable, PEEK_BYTES } from './body-kind.js'
import { isDeeperThan } from './json-text.js'

const DEEPEST = 100
const LIKE_JSON = /^[ \t\r\n]*[{[]/

/**
 * The text of an object or a list that all upstreams read alike; undefined for any other body, and if more of it would
 * have to be read. Never throws, and takes linear time.
 *
 * @param prefix the first bytes of the body
 * @param isLate true if the rest of the body had not arrived in time
 */
export function jsonIn(facts: Facts, prefix: Buffer, isLate: boolean): string | undefined {
  if (isCut(prefix, isLate) || isUnreadable(facts, prefix) || !isUtf8(prefix)) return undefined
  const text = prefix.toString('utf8')
  // Before the parser, for which deep nesting is expensive.
  if (!LIKE_JSON.test(text) || isDeeperThan(text, DEEPEST) || !isJson(text)) return undefined
  return text.trim()
}

/** True if there is, or may be, more of the body than its first bytes. */
export function isCut(prefix: Buffer, isLate: boolean): boolean {
  return isLate || prefix.length >= PEEK_BYTES
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
