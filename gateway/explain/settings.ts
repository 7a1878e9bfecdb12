/** Settings of the built-in kinds of rules as text. */
import { listed } from '../../config/problem.js'
import type { Costs } from '../../config/words/bucket.js'
import { notifyText } from '../../config/words/notify.js'
import type { QuotaWindow } from '../../config/words/quota.js'
import type { ReservedCost } from '../../config/words/reserve.js'
import type { Waits } from '../../config/words/waits.js'
import { LIFETIME } from '../../config/words/words.js'
import type { volumetric } from '../decide/volumetric.js'
import { grouped, perText } from '../forward/units.js'
import type { Static } from '../plugin.js'
import type { WrittenWhen } from '../policy/when.js'

/** The config of a volumetric rule; times in ms. */
export type VolumetricRule = Static<(typeof volumetric)['schema']>

/** `1,000 per 60 s`, `1,000 per 60 s (notifies at 80% to https://hooks.example.com/…)`. */
export function quotaText({ requests, per, notify }: VolumetricRule['quota']): string {
  const told = notify === undefined ? '' : ` (notifies at ${notifyText(notify)})`
  return `${grouped(requests)} per ${secondsText(per)}${told}`
}

/** `100 per hour`, `20,000 per month (Europe/Berlin)`, `500 in all`. */
export function windowText({ requests, per, timezone = 'UTC', algorithm }: QuotaWindow): string {
  if (per === LIFETIME) return `${grouped(requests)} ${perText(0, undefined, true)}`
  const [ms, calendar] = typeof per === 'number' ? [per] : [0, { unit: per, timezone }]
  const way = algorithm === undefined ? '' : ` (${algorithm})`
  return `${grouped(requests)} ${perText(ms, calendar)}${way}`
}

/** `10 for GET /a`, one for each pattern; empty if each request costs one. */
export function costTexts({ costs = {}, reserved = {} }: Costs): string[] {
  const fixed = Object.entries(costs).map(([pattern, cost]) => `${cost} for ${pattern}`)
  const settled = Object.entries(reserved).map(([pattern, cost]) => `${reservedText(cost)} for ${pattern}`)
  return [...fixed, ...settled]
}

/** `what x-tokens of the answer says (reserved: 2,000, or max_tokens up to 8,000; unknown: keep)`. */
function reservedText({ reserve, settle, unknown = 'keep' }: ReservedCost): string {
  const { default: usual, jsonBody, atMost = usual } = reserve
  const asked = jsonBody === undefined ? '' : `, or ${jsonBody} up to ${grouped(atMost)}`
  const places = [settle.answerHeader, settle.jsonBody, settle.sse && `the event’s ${settle.sse}`]
  const said = listed([...new Set(places.filter(place => place !== undefined))], 'or')
  return `what ${said} of the answer says (reserved: ${grouped(usual)}${asked}; unknown: ${unknown})`
}

/** `up to 0.3 s, 100 at a time`. */
export function waitText({ ms, most }: Waits): string {
  return `up to ${secondsText(ms)}, ${grouped(most)} at a time`
}

/** Milliseconds as `1.5 s`. */
export function secondsText(ms: number): string {
  return `${(ms / 1000).toLocaleString('en-US')} s`
}

/** Whose requests a rule looks at: `with credentials, of plans free and team`. */
export function whoseText({ authenticated, ...lists }: WrittenWhen): string {
  const credentials = authenticated === undefined ? [] : [CREDENTIALS[`${authenticated}`]]
  const others = Object.entries(lists).map(([what, words]) => `of ${what} ${listed(words ?? [], 'and')}`)
  return [...credentials, ...others].join(', ')
}

const CREDENTIALS = {
  true: 'with credentials',
  false: 'without credentials',
  verified: 'with verified credentials',
} as const

/** What a request of a volumetric rule costs: '' or `, 5 each`. */
export function costText({ cost = 1, count, countWhen }: VolumetricRule): string {
  const each = typeof cost === 'number' ? `${cost} each` : `each as ${cost.answerHeader} of its answer says`
  const answered = countWhen ? [`only those answered ${countWhen.status.join(', ')}`] : []
  const messages = count === 'message' ? ['messages of WebSockets only'] : []
  return [...messages, ...answered, ...(cost === 1 ? [] : [each])].map(text => `, ${text}`).join('')
}

const TEXTS: Readonly<Record<string, Readonly<Record<string, (value: never) => string>>>> = {
  'in-flight': { slotTtl: secondsText, maxHold: secondsText, wait: secondsText },
  volumetric: { quota: quotaText, blockFor: secondsText },
}

/** The value of a rule's setting; unknown ones, such as a plugin's own, as JSON. */
export function settingText(kind: string, setting: string, value: unknown): string {
  const text = setting === 'when' ? whoseText : TEXTS[kind]?.[setting]
  if (text !== undefined) return text(value as never)
  if (Array.isArray(value)) return value.map(one => settingText(kind, setting, one)).join(' + ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
