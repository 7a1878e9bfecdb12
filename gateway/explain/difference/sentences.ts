/**
 * A difference as sentences, one for each change, with what it does to counters: windows are known by their name, rules
 * by their id, kind, mode and key.
 */

import { isDeepStrictEqual } from 'node:util'
import { ownerOfTrial } from '../../../config/words/share.js'
import type { Configuration } from '../../configured/load.js'
import type { Mode } from '../../types.js'
import { settingText } from '../settings.js'
import type { Change, FieldChange, FieldValues } from './changes.js'
import {
  bucketChanges,
  compareLimits,
  compareRules,
  type PolicyDifference,
  type ProjectChange,
  type RuleChange,
} from './compare.js'

/** One change, under the heading of what it belongs to. */
export interface ChangeSentence {
  readonly heading: string
  readonly change: Change['change']
  readonly sentence: string
}

/** In the order of their headings. */
export function* sentencesOf(difference: PolicyDifference): Generator<ChangeSentence> {
  const { limits, moved, rules, access, projects, settings } = difference
  for (const { for: whom, buckets } of limits) {
    const heading = `Limits for ${whom}`
    for (const bucket of buckets) yield { heading, change: bucket.change, sentence: bucketText(bucket) }
  }
  for (const { mode, requests, from, to, for: whom } of moved) {
    const heading = 'Requests that fall into another bucket'
    const [old, now] = [bucketName(from, mode), bucketName(to, mode)]
    yield { heading, change: 'changed', sentence: `${requests}: from ${old} to ${now}, for ${whom}` }
  }
  for (const rule of rules) {
    yield { heading: 'Endpoint rules', change: rule.change, sentence: ruleText(rule) }
  }
  for (const entry of access) {
    const sentence = ruleText({ ...entry, kind: 'access' })
    yield { heading: 'Access', change: entry.change, sentence }
  }
  for (const project of projects) {
    for (const sentence of projectTexts(project)) {
      yield { heading: 'Projects', change: project.change, sentence }
    }
  }
  for (const setting of settings) {
    const heading = 'Settings of gateway.yaml'
    const sentence = [fieldText(setting, plain), ...settingCounters(setting)].join('. ')
    yield { heading, change: 'changed', sentence }
  }
}

function bucketName(name: string | null, mode: Mode): string {
  if (mode === 'report-only') return name === null ? 'no report-only bucket' : `${name} (report-only)`
  return name === null ? 'no bucket (no limit)' : name
}

/** `catch-all: 600 → 700 per second`. */
function bucketText(bucket: Change): string {
  const { name, change, fields } = bucket
  const isTrial = ownerOfTrial(name) !== undefined
  if (change === 'removed') {
    return `${name}: ${isTrial ? NOT_TRIED : 'no quota any more, its requests fall into other buckets'}`
  }
  const said =
    change === 'changed' ? fields.filter(isReported) : fields.filter(({ field }) => !QUIET.has(field))
  const texts = [...said.map(quotaText), ...(isTrial && change === 'added' ? ['tried'] : [])]
  return [`${name}: ${texts.join(', ')}`, ...bucketCounters(bucket)].join('. ')
}

const NOT_TRIED = 'not tried any more'

/** Settings that come or go with the whole quota are not listed. */
function isReported({ field, old, new: now }: FieldChange): boolean {
  return !QUIET.has(field) || (old !== null && now !== null)
}

/** `20 → 25 per second`, `500 per hour → 600 per hour`, `no longer unlimited`. */
function quotaText(change: FieldChange): string {
  const { field, old, new: now } = change
  if (field === 'unlimited') return now === null ? 'no longer unlimited' : 'unlimited'
  if (old !== null && now !== null) return fieldText(change, plain)
  if (field === 'enforceFor')
    return now === null ? `no share any more (${old})` : `enforced for ${now} of projects`
  const text = (value: unknown) => `${[value].flat().join(', ')}${UNITS[field] ?? ''}`
  const what = LEADS[field] ?? ''
  return now === null ? `no longer ${what}${text(old)}` : `${what}${text(now)}`
}

const LEADS: Readonly<Record<string, string>> = {
  costs: 'costs ',
  key: 'counted by ',
  notify: 'notifies at ',
  wait: 'waits ',
}

/** Settings that are only reported when their value changes. */
const QUIET = new Set(['algorithm', 'lease', 'mode', 'onStoreError'])

function ruleText(rule: RuleChange): string {
  const { name, kind, change, fields } = rule
  const isTrial = ownerOfTrial(name) !== undefined
  if (change === 'removed') return `${name}: ${isTrial ? NOT_TRIED : 'removed'}`
  const shown: Shown = (value, field) => settingText(kind, field, value)
  if (isTrial && change === 'added') {
    const quotas = fields.filter(({ field }) => field === 'quota')
    return `${name}: ${quotas.map(one => shown(one.new, 'quota')).join('')}, tried`
  }
  if (change === 'added') {
    return `${name}: ${fields.map(({ field, new: value }) => `${field} ${shown(value, field)}`).join(', ')}`
  }
  const texts = fields.map(one => fieldText(one, shown))
  return [`${name}: ${texts.join(', ')}`, ...ruleCounters(rule)].join('. ')
}

function projectTexts({ name, change, fields, buckets, as }: ProjectChange): string[] {
  if (change === 'removed') return [`${name}: removed; its requests are those of an unknown project`]
  const own = fields.length === 0 ? [] : [fields.map(one => fieldText(one, plain)).join(', ')]
  const limits = as === null ? buckets.map(bucketText) : [`limits as of ${as}`]
  return [...own, ...limits].map(text => `${name}: ${text}`)
}

const UNITS: Readonly<Record<string, string>> = { burst: ' per second', sustained: ' per minute' }

type Shown = (value: unknown, field: string) => string

/** Changes that belong to no rule. */
const plain: Shown = (value, field) =>
  field === 'identify' && !Array.isArray(value)
    ? identifierText(value as FieldValues)
    : settingText('', field, value)

/** `host`, `header (header x-project)`. */
function identifierText({ plugin, ...settings }: FieldValues): string {
  const texts = Object.entries(settings).map(([name, value]) => `${name} ${settingText('', name, value)}`)
  return texts.length === 0 ? String(plugin) : `${plugin} (${texts.join(', ')})`
}

function fieldText({ field, old, new: now }: FieldChange, shown: Shown): string {
  const unit = UNITS[field]
  const [before, after] = [shown(old, field), shown(now, field)]
  if (unit !== undefined) return `${before} → ${after}${unit}`
  if (Array.isArray(old) && Array.isArray(now)) return listText(field, old, now, shown)
  if (old === null) return `${field} ${after}`
  return now === null ? `no ${field} any more (${before})` : `${field} ${before} → ${after}`
}

/** Lists are compared by what was added and removed; if only the order differs, both are shown. */
function listText(field: string, old: readonly unknown[], now: readonly unknown[], shown: Shown): string {
  const [before, after] = [old, now].map(list => list.map(one => shown(one, field))) as [string[], string[]]
  const came = after.filter(one => !before.includes(one)).map(one => `+ ${one}`)
  const went = before.filter(one => !after.includes(one)).map(one => `- ${one}`)
  const both = [...went, ...came]
  return `${field} ${both.length > 0 ? both.join(', ') : `${before.join(', ')} → ${after.join(', ')}`}`
}

/** Settings that are part of counter keys. */
const OF_KEYS = new Set(['mode', 'key', 'kind'])
const WINDOW = /^(?:burst|sustained|window (.+))$/

/** What the change of a bucket's quota means for its counters, as sentences; none if all count on as before. */
function bucketCounters({ change, fields }: Change): string[] {
  if (change !== 'changed') return []
  if (startsAgain(fields)) return ['Its counters start again']
  const names = (of: (change: FieldChange) => boolean) =>
    fields.flatMap(one => (WINDOW.test(one.field) && of(one) ? [one.field.replace(WINDOW, windowName)] : []))
  const sentences = {
    'New counters': names(({ old }) => old === null),
    'Counters that end': names(one => one.new === null),
    'Counts that go on under another length or algorithm': names(({ old, new: now }) => isOther(old, now)),
  }
  return Object.entries(sentences).flatMap(([what, of]) =>
    of.length > 0 ? [`${what}: ${of.join(', ')}`] : [],
  )
}

/** The same for an endpoint rule. */
function ruleCounters({ kind, change, fields }: RuleChange): string[] {
  return kind !== 'access' && change === 'changed' && startsAgain(fields) ? ['Its counters start again'] : []
}

/** The same for a setting of gateway.yaml. */
function settingCounters({ field }: FieldChange): string[] {
  return field === 'redis' ? ['All counters start again there'] : []
}

/**
 * What a reload does to counters, such as `search: New counters: burst`, at most `most` sentences. Costs what has
 * changed, not what there is: projects that stayed as they were are not looked at.
 */
export function movedCounters(before: Configuration, after: Configuration, most: number): string[] {
  const known = new Map(before.config.projects.map(project => [project.id, project]))
  const projects = after.config.projects.flatMap(project => {
    const was = known.get(project.id)
    if (was === undefined || isDeepStrictEqual(was, project)) return []
    const changes = bucketChanges(before.compiled.policy.tableOf(was), after.compiled.policy.tableOf(project))
    return changes.map(change => ({ ...change, name: `${project.id}: ${change.name}` }))
  })
  const buckets = [...compareLimits(before, after).flatMap(({ buckets }) => buckets), ...projects]
  const sentences = [
    ...buckets.flatMap(change => bucketCounters(change).map(text => `${change.name}: ${text}`)),
    ...compareRules(before, after).flatMap(rule => ruleCounters(rule).map(text => `${rule.name}: ${text}`)),
  ]
  return [...new Set(sentences)].slice(0, most)
}

const startsAgain = (fields: readonly FieldChange[]): boolean =>
  fields.some(({ field }) => OF_KEYS.has(field))

const windowName = (field: string, name: string | undefined): string => name ?? field

/** Whether a window has more than another number of requests. */
function isOther(old: unknown, now: unknown): boolean {
  const rest = (value: unknown) => String(value).replace(/^[\d,]+/, '')
  return old !== null && now !== null && rest(old) !== rest(now)
}
