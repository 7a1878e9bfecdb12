/** What a refusal says about the rules that caused it. */

import type { RefusalText } from '../compiled-rule.js'
import type { Rule } from '../types.js'
import type { Outcome, Reading } from '../verdict.js'
import { perText } from './units.js'

/** Cached for each rule while the same policies are violated, as in a flood thousands of refusals are alike. */
export function refusedRule({ rule, readings }: Outcome): RefusalText {
  const made = rule.made ?? {}
  const last = made.refusal
  if (last !== undefined && areOf(last.violated, readings)) return last
  const violated = readings.filter(reading => reading.violated)
  const next = {
    text: textOf(rule, violated),
    policies: violated.length === 0 ? [rule.id] : violated.map(({ policy }) => policy),
    hidden: violated.some(({ hidden }) => hidden),
    violated,
  }
  made.refusal = next
  return next
}

/** True for a batch of more calls than the quota of its own rule admits at all: no wait helps it. */
export function neverFits(
  { key }: Pick<Rule, 'key'>,
  { quota, cost = 1, hidden }: Pick<Reading, 'quota' | 'cost' | 'hidden'>,
): boolean {
  return cost > quota && !hidden && key.includes('json-rpc')
}

/** True when the violated readings are of the same policies as `violated`. */
function areOf(violated: readonly Reading[], readings: readonly Reading[]): boolean {
  let i = 0
  for (const reading of readings) {
    if (!reading.violated) continue
    const other = violated[i]
    if (other === undefined || !isOf(other, reading)) return false
    i += 1
  }
  return i === violated.length
}

function isOf(one: Reading, other: Reading): boolean {
  return (
    one.policy === other.policy &&
    one.quota === other.quota &&
    one.windowMs === other.windowMs &&
    one.calendar === other.calendar &&
    one.lifetime === other.lifetime &&
    one.cost === other.cost &&
    one.hidden === other.hidden
  )
}

function textOf(rule: Rule, violated: readonly Reading[]): string {
  if (violated.length === 0) return `Rule ${rule.id} counts by something that this request lacks.`
  return violated.map(reading => sentenceOf(rule, reading)).join(' ')
}

/** Of a lifetime window, to which only credit adds. */
function creditSentence(id: string, quota: number, cost: number, hidesNumbers: boolean | undefined): string {
  const help = 'It admits more once it gets new credit; waiting does not help.'
  if (hidesNumbers || quota === 0) return `The credit of bucket ${id} is used up. ${help}`
  const rest = cost > 1 ? `this one counts as ${cost}, and fewer are left` : 'its credit is used up'
  return `Bucket ${id} admits ${quota} request${quota === 1 ? '' : 's'} in all, and ${rest}. ${help}`
}

function sentenceOf(
  { id, key, hidesNumbers }: Rule,
  { quota, windowMs, calendar, lifetime, cost = 1, hidden }: Reading,
): string {
  if (hidden) return `Rule ${id} has seen too many requests from this source.`
  if (lifetime) return creditSentence(id, quota, cost, hidesNumbers)
  if (hidesNumbers) {
    if (windowMs === undefined)
      return `Rule ${id} admits no more requests to this resource while others are in flight.`
    if (neverFits({ key }, { quota, cost }))
      return `Bucket ${id} admits no batch of this size. Send fewer calls at a time.`
    return `Bucket ${id} admits no more requests for now.`
  }
  if (windowMs !== undefined) {
    const whose = key.includes('client-ip') ? ' from each client address' : ''
    const admits = `Bucket ${id} admits ${quota} request${quota === 1 ? '' : 's'} ${perText(windowMs, calendar)}${whose}`
    if (neverFits({ key }, { quota, cost }))
      return `${admits}; this batch counts as ${cost}. Send fewer calls at a time.`
    if (cost > 1) return `${admits}; this one counts as ${cost}, and fewer are left.`
    return `${admits}, and they are used up.`
  }
  return `Rule ${id} admits ${quota} request${quota === 1 ? '' : 's'} to this resource at a time, and that many are in flight.`
}
