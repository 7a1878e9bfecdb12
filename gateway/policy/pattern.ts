/** Patterns of the policy files: an optional method and a path of literals, `{id}`, `*` and a last `**`. */
import { isUtf8 } from 'node:buffer'
import { METHODS } from 'node:http'

export type Segment =
  /** As in normal paths: `%40` becomes `@`, and `%2A` a `*` that matches only itself. */
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter' }
  | { readonly kind: 'any' }
  /** Zero or more segments; only ever the last one. */
  | { readonly kind: 'rest' }

export interface Pattern {
  readonly method: string | undefined
  readonly segments: readonly Segment[]
  readonly text: string
}

/** A pattern that cannot be compiled; the message is a sentence for the operator. */
export class PatternError extends Error {}

const PLAIN = /^[A-Za-z0-9_-]+$/
const PCHAR = /^(?:[A-Za-z0-9\-._~!$&'()+,;=:@]|%[0-9A-F]{2})+$/
const ESCAPES = /(?:%[0-9A-F]{2})+/gi
/** Escapes of characters that normal paths contain unescaped. */
const SUB_DELIMITERS = /%(?:2[1467-9A-C]|3[AD]|40)/g

/** What no normal path contains, and why. */
const NEVER: readonly [RegExp, string][] = [
  [/^\.\.?$/, 'request paths are resolved first'],
  [/[?#]/, 'a path ends before its query and fragment'],
  [
    /%(?:2F|5C|[01][0-9A-F]|7F|C2%[89][0-9A-F])/i,
    'requests with an escaped slash, backslash or control character are refused',
  ],
  [/%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])/, 'the escapes of request paths are in capitals'],
  [/%(?:2D|2E|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A]|7E)/, 'request paths are unescaped first'],
]
/** Methods that are always answered 405. */
const UNSERVED = ['TRACE', 'CONNECT']

/** True for methods that the gateway serves. */
export function isServedMethod(method: string): boolean {
  return METHODS.includes(method) && !UNSERVED.includes(method)
}

/**
 * Reads `GET /admin/{id}`, `/scim/**` or the catch-all `*`.
 * @throws {PatternError} with a sentence that says what is wrong
 */
export function parsePattern(text: string): Pattern {
  if (text === '*') return { method: undefined, segments: [{ kind: 'rest' }], text }
  const space = text.indexOf(' ')
  const method = space < 0 ? undefined : text.slice(0, space)
  const path = space < 0 ? text : text.slice(space + 1)
  if (method !== undefined && !/^[A-Z]+$/.test(method)) {
    throw new PatternError(`"${method}" is not a method; write it in capitals, such as "GET /path".`)
  }
  if (method !== undefined && !isServedMethod(method)) {
    throw new PatternError(`The pattern "${text}" can never match: no request is served with ${method}.`)
  }
  if (!path.startsWith('/')) {
    throw new PatternError(`The path "${path}" must begin with "/"; the catch-all is a lone "*".`)
  }
  const parts = path === '/' ? [] : path.slice(1).split('/')
  return { method, segments: parts.map((part, i) => parseSegment(part, i === parts.length - 1)), text }
}

/** The pattern with its literals in lowercase; its text, which names it in logs and counters, stays the same. */
export function foldPattern(pattern: Pattern): Pattern {
  const segments = pattern.segments.map(segment =>
    segment.kind === 'literal' ? { ...segment, text: segment.text.toLowerCase() } : segment,
  )
  return { ...pattern, segments }
}

function parseSegment(part: string, last: boolean): Segment {
  if (PLAIN.test(part)) return { kind: 'literal', text: part }
  if (part === '**') {
    if (!last) throw new PatternError('"**" may only stand at the end of a path.')
    return { kind: 'rest' }
  }
  if (part === '*') return { kind: 'any' }
  if (/^\{[A-Za-z_][A-Za-z0-9_-]*\}$/.test(part)) return { kind: 'parameter' }
  if (part === '') {
    throw new PatternError(
      'A path must not contain an empty segment; trailing slashes are ignored when matching.',
    )
  }
  const why = NEVER.find(([shape]) => shape.test(part))?.[1] ?? misspeltEscape(part)
  if (why !== undefined) throw new PatternError(`The segment "${part}" can never match: ${why}.`)
  if (!PCHAR.test(part)) {
    throw new PatternError(`The segment "${part}" must be plain text, "{name}", "*" or a last "**".`)
  }
  return { kind: 'literal', text: part.replace(SUB_DELIMITERS, decodeURIComponent) }
}

function misspeltEscape(part: string): string | undefined {
  const runs = part.match(ESCAPES) ?? []
  const areUtf8 = runs.every(run => isUtf8(Buffer.from(run.replaceAll('%', ''), 'hex')))
  return areUtf8 ? undefined : 'requests whose escapes are not UTF-8 are refused'
}
