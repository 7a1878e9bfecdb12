/** How a location of nginx is written, and what is closed within one whose own requests is unknown. */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import { type Context, closeIn, rankOf } from './nginx-context.js'
import { type Guards, guardIn, guardsOf } from './nginx-guard.js'
import { literalsOf } from './nginx-regex.js'
import type { Directive } from './nginx-text.js'

/** What a location takes: a path, all that a path begins, what an expression matches, or what others send there. */
export interface Location {
  readonly kind: 'exact' | 'prefix' | 'expression' | 'named'
  readonly text: string
}

const MODIFIERS: Readonly<Record<string, Location['kind']>> = {
  '=': 'exact',
  '^~': 'prefix',
  '~': 'expression',
  '~*': 'expression',
}

/** Reads the words after `location`, where nginx wants no space after the modifier: `=/a` is `= /a`. */
export function locationOf(words: readonly string[]): Location {
  const [first = '', second] = words
  if (second !== undefined) return { kind: MODIFIERS[first] ?? 'expression', text: second }
  const [, modifier, text] = /^(=|\^~|~\*?)(.*)$/s.exec(first) ?? []
  if (modifier !== undefined) return { kind: MODIFIERS[modifier] ?? 'expression', text: text ?? '' }
  return { kind: first.startsWith('@') ? 'named' : 'prefix', text: first }
}

/** The places of which every request of a location is in one. */
export function placesOf({ kind, text }: Location): Pick<Place, 'kind' | 'path'>[] {
  if (kind === 'named') return []
  return kind === 'expression' ? literalsOf(text) : [{ kind, path: text }]
}

/** Closes what is guarded within a location by a regular expression that itself is not. */
export function closeWithin(
  block: readonly Directive[],
  guards: Guards,
  outer: Context,
  into: Migration,
): void {
  for (const one of block) {
    if (one.name !== 'location') continue
    const inner = guardsOf(one.block ?? [], guards)
    const guard = guardIn(inner)
    if (guard === undefined) closeWithin(one.block ?? [], inner, outer, into)
    else closeLocation(one, guard.what, outer, into)
  }
}

/** Closes a guarded location that nginx prefers to those by prefixes. */
export function closeLocation(one: Directive, what: string, outer: Context, into: Migration): void {
  for (const place of placesOf(locationOf(one.words)))
    closeIn(
      outer,
      { ...place, rank: rankOf(outer, 2, 0) },
      `in location ${one.words.join(' ')}, ${what}`,
      one,
      into,
    )
}
