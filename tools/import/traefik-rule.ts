/** Traefik's router rules: paths, methods and hosts, and what else they ask for (doc.traefik.io, 'Routers', 'Rule'). */
import { isHostName } from '../../config/checks/rules.js'
import { asLiteral, below, isRouteHost, type MatchedPlace } from './places.js'
import { literalsOf } from './regex.js'

/** One combination of conditions that satisfies a rule, or more requests than that where `besides` says so. */
export interface RuleFit {
  readonly path?: string
  readonly kind?: MatchedPlace['kind']
  readonly method?: string
  readonly host?: string
  /** Conditions that a route here cannot have, as written. */
  readonly besides: readonly string[]
}

/** True for the contrary of a condition other than hosts, methods and paths. */
export const isNegated = (besides: string): boolean => /^!./.test(besides)

/** A rule that cannot be read; the message says why. */
export class RuleFault extends Error {}

const MOST_FITS = 100
const DEEPEST = 100
const MARKS = ['&&', '||', '!', '(', ')']

type RuleToken = string | { readonly matcher: string; readonly words: readonly string[] }

/** All combinations that satisfy the rule. @throws {RuleFault} */
export function fitsOf(rule: string): RuleFit[] {
  const tokens = tokensOf(rule)
  let at = 0
  let depth = 0
  const bounded = (fits: RuleFit[]): RuleFit[] => {
    if (fits.length > MOST_FITS) throw new RuleFault(`It can be met in more than ${MOST_FITS} ways.`)
    return fits
  }
  const any = (): RuleFit[] => {
    const fits = all()
    while (tokens[at] === '||') {
      at += 1
      fits.push(...all())
      bounded(fits)
    }
    return fits
  }
  const all = (): RuleFit[] => {
    let fits = one()
    while (tokens[at] === '&&') {
      at += 1
      const more = one()
      fits = bounded(fits.flatMap(left => more.map(right => joined(left, right))))
    }
    return fits
  }
  const nested = (read: () => RuleFit[]): RuleFit[] => {
    depth += 1
    if (depth > DEEPEST) throw new RuleFault(`It is nested deeper than ${DEEPEST} levels.`)
    const fits = read()
    depth -= 1
    return fits
  }
  const one = (): RuleFit[] => {
    const token = tokens[at++]
    if (token === '(') {
      const fits = nested(any)
      if (tokens[at++] !== ')') throw new RuleFault('A parenthesis is not closed.')
      return fits
    }
    if (token === '!') {
      const [besides = ''] = nested(one).flatMap(fit => fit.besides)
      return [{ besides: [`!${besides}`] }]
    }
    if (token === undefined || typeof token === 'string')
      throw new RuleFault('It does not end where it should.')
    return bounded(token.words.flatMap((word, i) => fitsOfMatcher(token.matcher, word, token.words, i)))
  }
  const fits = any()
  if (at < tokens.length) throw new RuleFault('It does not end where it should.')
  return fits
}

/** One pass, character by character. */
function tokensOf(rule: string): RuleToken[] {
  const tokens: RuleToken[] = []
  let at = 0
  const skip = (): void => {
    while (at < rule.length && (rule[at] as string).trim() === '') at += 1
  }
  const faultAt = (start: number): RuleFault =>
    new RuleFault(`"${rule.slice(start, start + 40)}" cannot be read.`)
  const words = (): string[] => {
    const found: string[] = []
    for (skip(); rule[at] !== ')'; skip()) {
      const quote = rule[at]
      const end = quote === '`' || quote === '"' || quote === "'" ? rule.indexOf(quote, at + 1) : -1
      if (end < 0) throw faultAt(at)
      const word = rule.slice(at + 1, end)
      if (quote === '"' && word.includes('\\'))
        throw new RuleFault(`"${word.slice(0, 40)}" has escapes. Write it in backquotes, without them.`)
      found.push(word)
      at = end + 1
      skip()
      if (rule[at] === ',') at += 1
    }
    at += 1
    return found
  }
  for (skip(); at < rule.length; skip()) {
    const mark = MARKS.find(one => rule.startsWith(one, at))
    if (mark !== undefined) {
      tokens.push(mark)
      at += mark.length
      continue
    }
    const start = at
    while (/[A-Za-z]/.test(rule[at] ?? '')) at += 1
    const matcher = rule.slice(start, at)
    skip()
    if (matcher === '' || rule[at] !== '(') throw faultAt(start)
    at += 1
    tokens.push({ matcher, words: words() })
  }
  return tokens
}

/** Every host below a name. */
const BELOW_HOST = /^\^\.[+*]\\\.((?:[a-z0-9-]|\\\.)+)\$$/

function fitsOfMatcher(matcher: string, word: string, words: readonly string[], i: number): RuleFit[] {
  switch (matcher) {
    case 'Path':
      return [pathFit('exact', word)]
    case 'PathPrefix':
      return [pathFit('prefix', word)]
    case 'Method':
      return [{ method: word.toUpperCase(), besides: [] }]
    case 'Host': {
      // A host with a star, or otherwise than requests have it, is a condition that no route has.
      const host = word.toLowerCase().replace(/\.$/, '')
      return [isHostName(host) ? { host, besides: [] } : { besides: [`Host(${word.slice(0, 60)})`] }]
    }
    case 'HostRegexp': {
      const [, name = ''] = BELOW_HOST.exec(word) ?? []
      const host = `*.${name.replaceAll('\\.', '.')}`
      return isRouteHost(host) ? [{ host, besides: [] }] : [{ besides: [`HostRegexp(${word.slice(0, 60)})`] }]
    }
    case 'PathRegexp':
      return literalsOf(word).map(one => ({ ...one, besides: ['PathRegexp'] }))
    default:
      // Name and value are one condition.
      return i > 0 ? [] : [{ besides: [`${matcher}(${words.slice(0, 2).join(', ').slice(0, 60)})`] }]
  }
}

/** `{id}` of Traefik 2 is a parameter here, too; with a regular expression the paths before it are meant. */
function pathFit(kind: 'exact' | 'prefix', word: string): RuleFit {
  const mark = word.indexOf('{')
  if (mark < 0 || word.indexOf(':', mark) <= mark) return { kind, path: word, besides: [] }
  return { kind: 'prefix', path: word.slice(0, mark), besides: [`the expression in ${word.slice(0, 60)}`] }
}

function joined(left: RuleFit, right: RuleFit): RuleFit {
  const twice = (['path', 'method', 'host'] as const).filter(
    key => left[key] !== undefined && right[key] !== undefined,
  )
  const besides = [...left.besides, ...right.besides, ...twice.map(key => `two ${key}s`)]
  return { ...right, ...left, besides }
}

/** The place that a fit stands for; with a parameter in its path, all that begins as the path before it. */
export function placeOf(
  { path = '/', kind = 'prefix', method, host }: RuleFit,
  rank: readonly number[],
): MatchedPlace & { readonly hasParameter: boolean } {
  const mark = path.indexOf('{')
  return {
    hosts: host === undefined ? [] : [host],
    kind: mark < 0 ? kind : 'prefix',
    path: mark < 0 ? path : path.slice(0, mark),
    rank,
    hasParameter: kind === 'exact' && mark >= 0,
    ...(method !== undefined && { methods: [method] }),
  }
}

/** The pattern of a fit. A `{id}` of Traefik 2 stays a parameter. */
export function patternOf({ path = '/', kind = 'prefix', method }: RuleFit): string {
  const whole = kind === 'exact' ? asLiteral(path) : below(path)
  return method === undefined ? whole : `${method} ${whole}`
}
