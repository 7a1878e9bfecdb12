import { limits } from '../limits.js'
import { enterpriseUrn, groupUrn, userUrn } from './attributes.js'
import { ScimError } from './error.js'
import { checkName, isPassword } from './json.js'

export type Operator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le'
export type FilterLiteral = string | number | boolean | null

/** Names from the resource inwards; an extension's URN is the first name. */
export type AttributePath = readonly string[]

/** A filter of RFC 7644, section 3.4.2.2. */
export type Filter =
  | { readonly kind: 'and' | 'or'; readonly filters: readonly Filter[] }
  | { readonly kind: 'not'; readonly filter: Filter }
  | { readonly kind: 'present'; readonly path: AttributePath }
  | {
      readonly kind: 'compare'
      readonly path: AttributePath
      readonly operator: Operator
      readonly literal: FilterLiteral
    }
  /** `emails[type eq "work"]`: one value of the attribute matches the whole inner filter. */
  | { readonly kind: 'some'; readonly path: AttributePath; readonly filter: Filter }

const operators = new Set(['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'])
const textOperators = new Set(['co', 'sw', 'ew'])

interface Token {
  readonly kind: 'word' | 'string' | 'number' | 'mark' | 'tail'
  readonly text: string
  readonly at: number
}

/** A tail is the `.value` right after a bracket. */
const tokenPattern =
  /\s*(?:(?<string>"(?:[^"\\]|\\.)*")|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w:.$-]))|(?<word>[A-Za-z_$][\w:.$-]*)|(?<mark>[()[\]])|(?<=\])\.(?<tail>[A-Za-z_$][\w.$-]*))/y

/** Parses a filter. Throws 400 invalidFilter with the position at which it is not valid. */
export function parseFilter(text: string): Filter {
  if (Buffer.byteLength(text) > limits.filterBytes) {
    throw refuse(`The filter is longer than ${limits.filterBytes} bytes.`)
  }
  const parser = createParser(tokenize(text), text.length)
  const filter = parser.or(0)
  parser.end()
  return filter
}

/** Number of conditions that a filter checks for each value. */
export function countConditions(filter: Filter): number {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.reduce((sum, part) => sum + countConditions(part), 0)
    case 'not':
    case 'some':
      return 1 + countConditions(filter.filter)
    default:
      return 1
  }
}

/**
 * The names of a path such as `name.givenName` or `urn:…:User:department`. A core schema's URN is redundant and left
 * out; `extensions` are further URNs that may stand alone. Throws 400 invalidPath, also for more names than any
 * attribute has: whatever walks the path does so once for each resource.
 */
export function parseAttributePath(text: string, extensions: readonly string[] = []): AttributePath {
  const known = [enterpriseUrn, ...extensions].find(urn => urn.toLowerCase() === text.toLowerCase())
  if (known !== undefined) return [known]
  const colon = text.lastIndexOf(':')
  const urn = text.slice(0, Math.max(colon, 0))
  const names = text.slice(colon + 1).split('.')
  const isCore = [userUrn, groupUrn].some(core => core.toLowerCase() === urn.toLowerCase())
  const path = urn === '' || isCore ? names : [urn, ...names]
  if (path.length > limits.pathNames) throw notAnAttribute(text, ` has more than ${limits.pathNames} names.`)
  for (const name of path) checkName(name)
  if (path.some(name => name === '')) throw notAnAttribute(text, ' is not an attribute.')
  return path
}

const notAnAttribute = (text: string, why: string): ScimError =>
  new ScimError(400, `"${text.slice(0, 200)}"${why}`, 'invalidPath')

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  const end = text.trimEnd().length
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < end) {
    const at = tokenPattern.lastIndex
    const groups = tokenPattern.exec(text)?.groups
    const found = groups && Object.entries(groups).find(([, value]) => value !== undefined)
    if (!found?.[1]) throw refuse(`The filter is not valid at character ${at + 1}.`)
    tokens.push({
      kind: found[0] as Token['kind'],
      text: found[1],
      at: tokenPattern.lastIndex - found[1].length,
    })
  }
  return tokens
}

/** Recursive descent; `depth` counts brackets and `not`, so that no filter can exhaust the stack. */
function createParser(tokens: readonly Token[], length: number) {
  let next = 0

  const fail = (expected: string): never => {
    throw refuse(`The filter needs ${expected} at character ${(tokens[next]?.at ?? length) + 1}.`)
  }
  const isWord = (word: string): boolean =>
    tokens[next]?.kind === 'word' && tokens[next]?.text.toLowerCase() === word
  const isMark = (mark: string): boolean => tokens[next]?.kind === 'mark' && tokens[next]?.text === mark
  const skipMark = (mark: string): void => {
    if (!isMark(mark)) fail(`"${mark}"`)
    next++
  }

  function joined(kind: 'and' | 'or', part: (depth: number) => Filter, depth: number): Filter {
    const first = part(depth)
    const filters = [first]
    while (isWord(kind)) {
      next++
      filters.push(part(depth))
    }
    return filters.length === 1 ? first : { kind, filters }
  }
  const or = (depth: number): Filter => joined('or', and, depth)
  const and = (depth: number): Filter => joined('and', term, depth)

  function grouped(open: string, close: string, depth: number): Filter {
    if (depth >= limits.filterDepth) throw refuse(`The filter is nested deeper than ${limits.filterDepth}.`)
    skipMark(open)
    const filter = or(depth + 1)
    skipMark(close)
    return filter
  }

  function term(depth: number): Filter {
    if (isMark('(')) return grouped('(', ')', depth)
    if (isWord('not') && tokens[next + 1]?.text === '(') {
      next++
      return { kind: 'not', filter: grouped('(', ')', depth) }
    }
    const word = tokens[next]
    if (word?.kind !== 'word') return fail('an attribute')
    next++
    const path = attribute(word.text)
    return isMark('[') ? valueFilter(path, depth) : comparison(path)
  }

  /** `emails[type eq "work"]`, or with a comparison of the values that match: `emails[type eq "work"].value eq "x"`. */
  function valueFilter(path: AttributePath, depth: number): Filter {
    const filter = grouped('[', ']', depth)
    const tail = tokens[next]
    if (tail?.kind !== 'tail') return { kind: 'some', path, filter }
    next++
    return {
      kind: 'some',
      path,
      filter: { kind: 'and', filters: [filter, comparison(attribute(tail.text))] },
    }
  }

  function comparison(path: AttributePath): Filter {
    const operator = tokens[next]?.kind === 'word' ? tokens[next]?.text.toLowerCase() : undefined
    if (operator === 'pr') {
      next++
      return { kind: 'present', path }
    }
    if (operator === undefined || !operators.has(operator)) return fail('an operator such as eq')
    next++
    const literal = value()
    const orders = operator !== 'eq' && operator !== 'ne'
    const fits =
      typeof literal === 'string' || !orders || (typeof literal === 'number' && !textOperators.has(operator))
    if (!fits) throw refuse(`The operator ${operator} cannot be used with ${literal}.`)
    const isTime = comparesTime(path.at(-1) ?? '', operator)
    if (isTime && literal !== null && Number.isNaN(Date.parse(String(literal)))) {
      throw refuse(`${JSON.stringify(literal)} is not a date with a time, such as "2027-01-31T12:00:00Z".`)
    }
    return { kind: 'compare', path, operator: operator as Operator, literal }
  }

  function value(): FilterLiteral {
    const token = tokens[next]
    if (!token || token.kind === 'mark' || token.kind === 'tail') return fail('a value')
    if (token.kind === 'word' && !/^(true|false|null)$/i.test(token.text)) return fail('a value in quotes')
    next++
    try {
      return JSON.parse(token.kind === 'word' ? token.text.toLowerCase() : token.text) as FilterLiteral
    } catch {
      throw refuse(`The filter has an invalid value at character ${token.at + 1}.`)
    }
  }

  function end(): void {
    if (next < tokens.length) fail('"and", "or" or its end')
  }
  return { or, end }
}

function attribute(text: string): AttributePath {
  if (isPassword(text)) throw refuse('password cannot be used in a filter.')
  try {
    return parseAttributePath(text)
  } catch (error) {
    throw refuse((error as Error).message)
  }
}

const timeNames = new Set(['created', 'lastmodified'])
/** Whether an operator compares the values of the attribute with this last name as points in time. */
export const comparesTime = (name: string, operator: string): boolean =>
  timeNames.has(name.toLowerCase()) && !textOperators.has(operator)

const refuse = (detail: string): ScimError => new ScimError(400, detail, 'invalidFilter')
