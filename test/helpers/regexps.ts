/**
 * The regular expressions of a source, and what is super-linear about one. The analyser is the one behind
 * eslint-plugin-regexp, without ESLint: it reads all of ours in a tenth of a second, where ESLint takes 16 s and recheck
 * 14 s and a program of its own for each platform.
 */
import { getConsumedChars, isPotentiallyEmpty } from 'regexp-ast-analysis'
import { type AnalysisResult, analyse } from 'scslre'
import ts from 'typescript'

export interface Found {
  readonly source: string
  readonly flags: string
  /** Line in the file, from 1. */
  readonly line: number
}

type Parsed = AnalysisResult['parsed']
type Alternative = Parsed['pattern']['alternatives'][number]
type Element = Alternative['elements'][number]
type Quantifier = Extract<Element, { type: 'Quantifier' }>

/**
 * The regular expressions in the TypeScript or JavaScript `text` at `path`: literals, patterns of JSON Schemas, and calls
 * of `RegExp`; of a text that is put together at run time, its expression is reported as `computed`.
 */
export function regexpsOf(path: string, text: string): { found: Found[]; computed: string[] } {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: Found[] = []
  const computed: string[] = []
  const add = (node: ts.Node, source: string, flags: string) => {
    found.push({ source, flags, line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1 })
  }
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.RegularExpressionLiteral) {
      const literal = node.getText()
      const end = literal.lastIndexOf('/')
      add(node, literal.slice(1, end), literal.slice(end + 1))
    } else if (ts.isPropertyAssignment(node) && /^'?pattern'?$/.test(node.name.getText())) {
      // Endpoints have patterns, too, such as "/**".
      const text = ts.isStringLiteralLike(node.initializer) ? node.initializer.text : ''
      if (text.startsWith('^')) add(node, text, 'u')
    } else if (
      (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
      node.expression.getText() === 'RegExp'
    ) {
      const [source, flags] = node.arguments ?? []
      if (source && ts.isStringLiteralLike(source)) {
        add(node, source.text, flags && ts.isStringLiteralLike(flags) ? flags.text : '')
      } else computed.push(source?.getText() ?? '')
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return { found, computed }
}

/** Why some text keeps this expression busy for longer than in proportion to its length; empty if none does. */
export function superLinear({ source, flags }: Pick<Found, 'source' | 'flags'>): string[] {
  const { parsed, reports } = analyse(
    { source, flags },
    { reportTypes: { Move: true, Self: true, Trade: true }, assumeRejectingSuffix: false },
  )
  const found = reports.map(({ character, exponential }) => {
    const { pick } = character
    return `${exponential ? 'exponential' : 'quadratic'} on many ${JSON.stringify(pick)}`
  })
  return found.length > 0 || parsed.flags.sticky ? found : restarts(parsed)
}

/**
 * Unbounded repeats that read on over every place where the search would begin anew, as in `/ab.*c/` on `abababab`. The
 * analyser knows only those at the beginning of an expression.
 */
function restarts({ pattern, flags }: Parsed): string[] {
  const found: string[] = []
  const walk = (alternative: Alternative, before: readonly Element[], follows: boolean): void => {
    let read = before
    for (const [i, element] of alternative.elements.entries()) {
      // The search begins at few places.
      if (element.type === 'Assertion' && (element.kind === 'start' || isNotBehind(element))) return
      const rejects =
        follows || alternative.elements.slice(i + 1).some(next => !isPotentiallyEmpty(next, flags))
      if (element.type === 'Quantifier' && element.max === Number.POSITIVE_INFINITY) {
        if (rejects && read.length > 0 && readsAll(element, read))
          found.push(`quadratic by ${element.raw} on repeated beginnings`)
      } else if (element.type === 'Group' || element.type === 'CapturingGroup') {
        for (const inner of element.alternatives) walk(inner, read, rejects)
      }
      if (element.type !== 'Assertion') read = [...read, element]
    }
  }
  const readsAll = ({ element }: Quantifier, read: readonly Element[]): boolean => {
    const own = getConsumedChars(element, flags).chars
    return read.every(
      one => isPotentiallyEmpty(one, flags) || !getConsumedChars(one, flags).chars.isDisjointWith(own),
    )
  }
  const isNotBehind = (element: Element) =>
    element.type === 'Assertion' && element.kind === 'lookbehind' && element.negate
  for (const alternative of pattern.alternatives) walk(alternative, [], false)
  return found
}
