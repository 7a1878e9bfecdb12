/** Locations and rewrites of nginx that no route can express: what is said of them, and which paths stay closed. */
import type { Migration } from './migration.js'
import { type Context, rankIn, rankOf } from './nginx-context.js'
import { answeredIn, rewrittenPaths } from './nginx-elsewhere.js'
import { guardsOf, isRefusing } from './nginx-guard.js'
import { closeWithin } from './nginx-location.js'
import { literalsOf } from './nginx-regex.js'
import type { Directive } from './nginx-text.js'
import { withoutSecret } from './without-secret.js'

/** Paths that nginx rewrites reach no upstream as they are. */
export function addRewritten(one: Directive, context: Context, isServer: boolean, into: Migration): void {
  const [expression, replacement = ''] = one.words
  const rank = isServer ? rankOf(context, 4, 0) : [...rankIn(context), 1]
  for (const { kind, path } of rewrittenPaths(one, context, isServer)) {
    into.keepFrom(
      { hosts: context.hosts, kind, path, rank },
      `rewritten to ${withoutSecret(replacement)} ("rewrite ${expression}")`,
      one,
    )
  }
}

/** A server with a `return` answers all requests itself, before it looks for a location. */
export function addFixedAnswers(one: Directive, context: Context, into: Migration): void {
  const answered = isRefusing(one) ? undefined : answeredIn([one])
  if (answered === undefined) return
  into.keepFrom(
    { hosts: context.hosts, kind: 'prefix', path: '/', rank: rankOf(context, 4, 0) },
    answered,
    one,
  )
}

/** A location by a regular expression that nobody guards. */
export function leaveExpression(one: Directive, expression: string, outer: Context, into: Migration): void {
  const block = one.block ?? []
  const isLimited = block.some(({ name }) => /^limit_(req|conn)$/.test(name))
  const but = isLimited ? ', without its own limits' : ''
  into.leftOut(
    one,
    `location ${one.words.join(' ')} and all in it. Patterns are not regular expressions. Those of its paths that are not closed take the routes of other locations${but}.`,
  )
  closeWithin(block, guardsOf(block, outer.guards), outer, into)
  const answered = answeredIn(block)
  if (answered === undefined) return
  for (const { kind, path } of literalsOf(expression)) {
    // What merely contains a text may be anything: it is left to the routes of other locations.
    if (kind !== 'prefix' || path === '/') continue
    const place = { hosts: outer.hosts, kind, path, rank: rankOf(outer, 2, 0) }
    into.keepFrom(place, `in location ${one.words.join(' ')}, ${answered}`, one)
  }
}
