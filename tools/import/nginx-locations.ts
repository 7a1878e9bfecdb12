/** nginx's servers and locations as places: which of them takes a request, what is closed, and what goes elsewhere. */
import type { Migration } from './migration.js'
import { answeredIn, type Guards, guardIn, guardsOf, isRefusing, rewrittenPaths } from './nginx-guards.js'
import type { NginxLimit } from './nginx-limits.js'
import type { Block, Directive } from './nginx-text.js'
import type { MatchedPlace, PlacePath } from './places.js'
import { literalsOf } from './regex.js'
import { type ImportedSettings, withoutSecret } from './upstreams.js'

/** What a block inherits from the blocks around it. */
export interface NginxContext {
  /** Hosts of its server; none: every host. */
  readonly hosts: readonly string[]
  readonly projects: readonly string[]
  /** True where the server has more hosts than can be listed, which another server would take here. */
  readonly hasOtherHosts: boolean
  readonly kind: MatchedPlace['kind']
  readonly path: string
  readonly limits: readonly NginxLimit[]
  readonly guards: Guards
  readonly settings: ImportedSettings
  /** The fields that are set on its requests. */
  readonly fields: Block
  /** False where only guards are read, because the routes of the server cannot be written. */
  readonly isRouted: boolean
}

/** What nginx takes first, beginning with the last one. */
const PREFIX = 1
const EXPRESSION = 2
const EXACT = 3
const SERVER_REWRITE = 4

/** nginx takes a server with the host first, then what the server rewrites, an exact location, and so on. */
const rankOf = ({ hosts }: NginxContext, kind: number, length = 0): number[] => [
  hosts.length > 0 ? 1 : 0,
  kind,
  length,
]

/** The place of a server or location. */
export function placeIn(context: NginxContext): MatchedPlace {
  const { hosts, kind, path } = context
  const rank = kind === 'exact' ? rankOf(context, EXACT) : rankOf(context, PREFIX, path.length)
  return { hosts, kind, path, rank }
}

/**
 * The place of a location that forwards. If its path ends with a slash, nginx sends those who left it out to the path with
 * it, whatever a shorter prefix says.
 */
export const openIn = (context: NginxContext): MatchedPlace & { readonly redirectsTwin: boolean } => ({
  ...placeIn(context),
  redirectsTwin: context.kind === 'prefix' && context.path.endsWith('/'),
})

/** Closes a place of a server, on the hosts that cannot be listed as well. */
export function closeIn(
  { hosts, hasOtherHosts }: NginxContext,
  place: PlacePath & Pick<MatchedPlace, 'rank'>,
  what: string,
  at: Directive,
  into: Migration,
): void {
  into.close({ ...place, hosts }, what, at)
  const [, ...rank] = place.rank
  if (hasOtherHosts) into.close({ ...place, hosts: [], rank: [0, ...rank] }, what, at)
}

/** What a location takes: a path, all that a path begins, what an expression matches, or what others send there. */
interface LocationMatch {
  readonly kind: 'exact' | 'prefix' | 'expression' | 'named'
  readonly text: string
}

const MODIFIERS: Readonly<Record<string, LocationMatch['kind']>> = {
  '=': 'exact',
  '^~': 'prefix',
  '~': 'expression',
  '~*': 'expression',
}

/** Reads the words after `location`, where nginx wants no space after the modifier: `=/a` is `= /a`. */
export function locationOf([first = '', second]: readonly string[]): LocationMatch {
  if (second !== undefined) return { kind: MODIFIERS[first] ?? 'expression', text: second }
  const [, modifier, text = ''] = /^(=|\^~|~\*?)(.*)$/s.exec(first) ?? []
  if (modifier !== undefined) return { kind: MODIFIERS[modifier] ?? 'expression', text }
  return { kind: first.startsWith('@') ? 'named' : 'prefix', text: first }
}

/** A location by a regular expression: closed where it is guarded, left out otherwise. */
export function leaveExpression(one: Directive, text: string, outer: NginxContext, into: Migration): void {
  const { block = [] } = one
  const what = `location ${one.words.join(' ')}`
  const guards = guardsOf(block, outer.guards)
  const guard = guardIn(guards)
  if (guard !== undefined) {
    closeLocation(one, guard.what, outer, into)
    return
  }
  const isLimited = block.some(({ name }) => /^limit_(req|conn)$/.test(name))
  const but = isLimited ? ', without its own limits' : ''
  into.leftOut(
    one,
    `${what} and all in it. Patterns are not regular expressions. Those of its paths that are not closed take the routes of other locations${but}.`,
  )
  closeWithin(block, guards, outer, into)
  const answered = answeredIn(block)
  if (answered === undefined) return
  const { hosts } = outer
  for (const place of literalsOf(text)) {
    // What merely contains a text may be anything: it is left to the routes of other locations.
    if (place.kind === 'prefix' && place.path !== '/')
      into.divert({ ...place, hosts, rank: rankOf(outer, EXPRESSION) }, `in ${what}, ${answered}`, one)
  }
}

/** Closes what is guarded within a location by a regular expression that itself is not. */
function closeWithin(block: Block, guards: Guards, outer: NginxContext, into: Migration): void {
  for (const one of block) {
    if (one.name !== 'location') continue
    const inner = guardsOf(one.block ?? [], guards)
    const guard = guardIn(inner)
    if (guard === undefined) closeWithin(one.block ?? [], inner, outer, into)
    else closeLocation(one, guard.what, outer, into)
  }
}

/** Closes a guarded location that nginx prefers to those by prefixes: places of which every request of it is in one. */
function closeLocation(one: Directive, guard: string, outer: NginxContext, into: Migration): void {
  const { kind, text } = locationOf(one.words)
  if (kind === 'named') return
  const places: PlacePath[] = kind === 'expression' ? literalsOf(text) : [{ kind, path: text }]
  const what = `in location ${one.words.join(' ')}, ${guard}`
  for (const place of places) closeIn(outer, { ...place, rank: rankOf(outer, EXPRESSION) }, what, one, into)
}

/** Paths that nginx rewrites reach no upstream as they are. */
export function addRewritten(
  one: Directive,
  context: NginxContext,
  isServer: boolean,
  into: Migration,
): void {
  const [expression, replacement = ''] = one.words
  const { hosts } = context
  const rank = isServer ? rankOf(context, SERVER_REWRITE) : [...placeIn(context).rank, 1]
  const what = `rewritten to ${withoutSecret(replacement)} ("rewrite ${expression}")`
  for (const { kind, path } of rewrittenPaths(one, context, isServer))
    into.divert({ hosts, kind, path, rank }, what, one)
}

/** A server with a `return` answers all requests itself, before it looks for a location. */
export function addFixedAnswers(one: Directive, context: NginxContext, into: Migration): void {
  const answered = isRefusing(one) ? undefined : answeredIn([one])
  if (answered === undefined) return
  const { hosts } = context
  into.divert({ hosts, kind: 'prefix', path: '/', rank: rankOf(context, SERVER_REWRITE) }, answered, one)
}
