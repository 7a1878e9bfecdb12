/** `stripPrefix` and `addPrefix` of a route: the path that its upstream gets, and back. Pure. */
import type { PathRewrite } from '../route.js'
import type { FaultHere } from './fault.js'
import { type Pattern, PatternError, parsePattern } from './pattern.js'

export interface WrittenRewrite {
  readonly stripPrefix?: string | undefined
  readonly addPrefix?: string | undefined
}

/**
 * The rewrite of a route with this pattern; undefined if nothing is written.
 *
 * A prefix is stripped by its number of segments: the pattern has made sure of its text, in whatever spelling.
 */
export function compileRewrite(
  { stripPrefix, addPrefix }: WrittenRewrite,
  { segments, text }: Pattern,
  faults: FaultHere[],
): PathRewrite | undefined {
  if (stripPrefix === undefined && addPrefix === undefined) return undefined
  const stripped = segmentsIn('stripPrefix', stripPrefix, faults)
  const added = pathOf(segmentsIn('addPrefix', addPrefix, faults))
  const isPrefix = stripped.every((part, i) => {
    const segment = segments[i]
    return segment?.kind === 'literal' && segment.text === part
  })
  if (!isPrefix) {
    const message = `"${stripPrefix}" is not how the path "${text}" begins, so not every request of the route has it. Write segments that the path spells out.`
    faults.push({ path: ['stripPrefix'], message })
  }
  return rewriting(stripped, added)
}

function rewriting(stripped: readonly string[], added: string): PathRewrite {
  const prefix = pathOf(stripped)
  const count = stripped.length
  return {
    forUpstream: path => added + behind(path, count) || '/',
    forClient(path) {
      const isBelow = path.startsWith(added) && (path.length === added.length || path[added.length] === '/')
      const rest = path.slice(added.length)
      // Without a prefix in front of it, the rest could name another host. Browsers drop tabs (URL standard, section 4.4).
      if (!isBelow || (prefix === '' && /^\/\t*[/\\]/.test(rest))) return undefined
      return prefix + rest || '/'
    },
  }
}

/** What follows the first `count` segments: empty, or from the slash on. A normal path has no empty segment. */
function behind(path: string, count: number): string {
  let at = 0
  for (let i = 0; i < count && at !== -1; i++) at = path.indexOf('/', at + 1)
  return at === -1 ? '' : path.slice(at)
}

const pathOf = (segments: readonly string[]): string => segments.map(segment => `/${segment}`).join('')

function segmentsIn(key: keyof WrittenRewrite, text: string | undefined, faults: FaultHere[]): string[] {
  if (text === undefined) return []
  try {
    const { segments } = parsePattern(text)
    const literals = segments.flatMap(one => (one.kind === 'literal' ? one.text : []))
    if (literals.length === 0 || literals.length < segments.length)
      throw new PatternError(`"${text}" must be plain segments such as /v1, not a pattern.`)
    return literals
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    faults.push({ path: [key], message: error.message })
    return []
  }
}
