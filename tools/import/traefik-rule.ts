/** Traefik's router rules, limited to paths, methods and hosts (doc.traefik.io, 'Routers', 'Rule'). */
import { asLiteral, below } from './paths.js'

/** One combination of conditions that satisfies a rule. */
export interface Fit {
  readonly path?: string
  readonly method?: string
  readonly host?: string
}

/** A rule that uses more than paths, methods and hosts; the message names the part. */
export class RuleFault extends Error {}

/** A mark, or the name of a matcher with what stands before its first word. */
const TOKEN = /(?:(&&|\|\||[!()])|([A-Za-z]+)\s*\()\s*/y
const WORD = /(?:`([^`]*)`|"([^"]*)")\s*(?:,\s*)?/y
const END = /\)\s*/y
const MOST_FITS = 100
const DEEPEST = 100

type Token = string | { readonly matcher: string; readonly words: readonly string[] }

/** All combinations that satisfy the rule. @throws {RuleFault} */
export function fitsOf(rule: string): Fit[] {
  const tokens = tokensOf(rule)
  let at = 0
  let depth = 0
  const any = (): Fit[] => {
    const fits = all()
    while (tokens[at] === '||') {
      at += 1
      fits.push(...all())
    }
    return fits
  }
  const all = (): Fit[] => {
    let fits = one()
    while (tokens[at] === '&&') {
      at += 1
      const more = one()
      fits = fits.flatMap(left => more.map(right => joined(left, right)))
      if (fits.length > MOST_FITS) throw new RuleFault(`It can be met in more than ${MOST_FITS} ways.`)
    }
    return fits
  }
  const one = (): Fit[] => {
    const token = tokens[at]
    at += 1
    if (token === '(') {
      depth += 1
      if (depth > DEEPEST) throw new RuleFault(`It is nested deeper than ${DEEPEST} levels.`)
      const fits = any()
      depth -= 1
      if (tokens[at] !== ')') throw new RuleFault('A parenthesis is not closed.')
      at += 1
      return fits
    }
    if (token === '!') throw new RuleFault('"!" has no counterpart.')
    if (token === undefined || typeof token === 'string')
      throw new RuleFault('It does not end where it should.')
    return token.words.map(word => fit(token.matcher, word))
  }
  const fits = any()
  if (at < tokens.length) throw new RuleFault('It does not end where it should.')
  return fits
}

function tokensOf(rule: string): Token[] {
  const tokens: Token[] = []
  let at = rule.length - rule.trimStart().length
  const read = (expression: RegExp): RegExpExecArray | undefined => {
    expression.lastIndex = at
    const found = expression.exec(rule) ?? undefined
    if (found !== undefined) at = expression.lastIndex
    return found
  }
  while (at < rule.length) {
    const unread = `"${rule.slice(at, at + 40)}" cannot be read.`
    const [, mark, matcher] = read(TOKEN) ?? []
    if (matcher !== undefined) {
      const words: string[] = []
      for (let word = read(WORD); word !== undefined; word = read(WORD)) words.push(word[1] ?? word[2] ?? '')
      if (read(END) === undefined) throw new RuleFault(unread)
      tokens.push({ matcher, words })
    } else if (mark !== undefined) tokens.push(mark)
    else throw new RuleFault(unread)
  }
  return tokens
}

function fit(matcher: string, word: string): Fit {
  switch (matcher) {
    case 'Path':
      return { path: pathOf(word) }
    case 'PathPrefix':
      return { path: below(pathOf(word)) }
    case 'Method':
      return { method: word.toUpperCase() }
    case 'Host':
      return { host: word.toLowerCase() }
    default:
      throw new RuleFault(`"${matcher}" has no counterpart: rules look at paths, methods and hosts.`)
  }
}

/** `{id}` of Traefik 2 is a parameter here, too; one with a regular expression is rejected. */
function pathOf(word: string): string {
  if (/\{[^{}]*:/.test(word)) throw new RuleFault(`The expression in "${word}" has no counterpart.`)
  return asLiteral(word)
}

function joined(left: Fit, right: Fit): Fit {
  for (const key of ['path', 'method', 'host'] as const) {
    if (left[key] !== undefined && right[key] !== undefined) throw new RuleFault(`A request has one ${key}.`)
  }
  return { ...left, ...right }
}
