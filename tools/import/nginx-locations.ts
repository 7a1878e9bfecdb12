/** nginx's servers and locations as places: which of them takes a request, what is closed, and what goes elsewhere. */
import type { Migration } from './migration.js'
import { fieldsOf, type NginxFields, NO_FIELDS } from './nginx-fields.js'
import { answeredIn, type Guards, guardIn, guardsOf, NO_GUARDS, rewrittenPaths } from './nginx-guards.js'
import { limitsOf, type NginxLimit } from './nginx-limits.js'
import { type Block, type Directive, named } from './nginx-text.js'
import { isWildcard, type MatchedPlace, type PlacePath } from './places.js'
import { literalsOf } from './regex.js'
import { type ImportedSettings, LONGEST_TIMEOUT_MS, withoutSecret } from './upstreams.js'

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
  readonly fields: NginxFields
  /** The media type of what it answers itself. */
  readonly type: string
  /** False where only guards are read, because the routes of the server cannot be written. */
  readonly isRouted: boolean
}

/** nginx refuses larger bodies unless the file says otherwise, and waits so long. */
const NGINX_DEFAULTS: ImportedSettings = {
  maxBody: 1024 * 1024,
  timeouts: { connect: 60_000, head: 60_000, idle: 60_000 },
}

/** What holds around all servers. */
export const ROOT: NginxContext = {
  ...{ hosts: [], projects: [], kind: 'prefix', path: '/', limits: [], guards: NO_GUARDS },
  ...{
    fields: NO_FIELDS,
    type: 'text/plain',
    settings: NGINX_DEFAULTS,
    isRouted: true,
    hasOtherHosts: false,
  },
}

/** What a block says, and what it inherits. */
export const contextIn = (block: Block, outer: NginxContext): NginxContext => ({
  ...outer,
  limits: limitsOf(block, outer.limits),
  guards: guardsOf(block, outer.guards),
  settings: settingsOf(block, outer.settings),
  fields: fieldsOf(block, outer.fields),
  type: named(block, 'default_type')[0]?.words[0] ?? outer.type,
})

/** What nginx takes first, beginning with the last one. */
const PREFIX = 1
const EXPRESSION = 2
const EXACT = 3
const SERVER_REWRITE = 4

/** The place of a server or location. Its hosts are not in its rank: see `onHosts`. */
export function placeIn({ hosts, kind, path }: NginxContext): MatchedPlace {
  return { hosts, kind, path, rank: kind === 'exact' ? [EXACT, 0] : [PREFIX, path.length] }
}

/** The place on each kind of its hosts: nginx looks for the name of a host first, then for the longest wildcard. */
export function onHosts<T extends MatchedPlace>(place: T): T[] {
  const { hosts, rank } = place
  if (hosts.length === 0) return [{ ...place, rank: [0, ...rank] }]
  const exact = hosts.filter(host => !isWildcard(host))
  const named = exact.length === 0 ? [] : [{ ...place, hosts: exact, rank: [LONGEST_HOST, ...rank] }]
  const wild = hosts.filter(isWildcard)
  return [...named, ...wild.map(host => ({ ...place, hosts: [host], rank: [host.length, ...rank] }))]
}

const LONGEST_HOST = 1000

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
  for (const one of onHosts({ ...place, hosts })) into.close(one, what, at)
  if (hasOtherHosts) for (const one of onHosts({ ...place, hosts: [] })) into.close(one, what, at)
}

/** Diverts a place of nginx. */
export function divert(place: MatchedPlace, what: string, at: Directive, into: Migration): void {
  for (const one of onHosts(place)) into.divert(one, what, at)
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
      divert({ ...place, hosts, rank: [EXPRESSION, 0] }, `in ${what}, ${answered}`, one, into)
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
  for (const place of places) closeIn(outer, { ...place, rank: [EXPRESSION, 0] }, what, one, into)
}

/** Diverts what the lines of a block send away: paths that nginx rewrites reach no upstream as they are. */
export function divertIn(block: Block, context: NginxContext, isServer: boolean, into: Migration): void {
  const { hosts } = context
  const rank = isServer ? [SERVER_REWRITE, 0] : [...placeIn(context).rank, 1]
  for (const one of block) {
    if (one.name !== 'rewrite') continue
    const [expression, replacement = ''] = one.words
    const what = `rewritten to ${withoutSecret(replacement)} ("rewrite ${expression}")`
    for (const { kind, path } of rewrittenPaths(one, context, isServer))
      divert({ hosts, kind, path, rank }, what, one, into)
  }
}

/** The limits and timeouts of a block, on top of those around it. */
function settingsOf(block: Block, outer: ImportedSettings): ImportedSettings {
  let { maxBody, timeouts } = outer
  for (const { name, words } of block) {
    const [word = ''] = words
    const ms = name.startsWith('proxy_') ? millisecondsOf(word) : undefined
    if (name === 'client_max_body_size') {
      const size = bytesOf(word)
      if (size !== undefined) maxBody = size === 0 ? undefined : size
    } else if (name === 'proxy_connect_timeout' && ms !== undefined) timeouts = { ...timeouts, connect: ms }
    else if (name === 'proxy_read_timeout' && ms !== undefined) timeouts = { ...timeouts, head: ms, idle: ms }
  }
  return { ...(maxBody !== undefined && { maxBody }), ...(timeouts !== undefined && { timeouts }) }
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNIT_BYTES: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3 }

function millisecondsOf(text: string): number | undefined {
  const [, count, unit = 's'] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? []
  const ms = Number(count) * (UNIT_MS[unit] ?? Number.NaN)
  return ms > 0 && ms <= LONGEST_TIMEOUT_MS ? ms : undefined
}

function bytesOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,9})([kmg]?)$/i.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (UNIT_BYTES[unit.toLowerCase()] ?? 1)
}
