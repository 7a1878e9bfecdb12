/** What an edit does to counters: windows are known by their name, rules by their id, kind, mode and key. */
import { isDeepStrictEqual } from 'node:util'
import type { Configuration } from '../../configured/load.js'
import type { Change, FieldChange } from './changes.js'
import { bucketChanges, compareLimits, compareRules, type RuleChange } from './compare.js'

/** Settings that are part of counter keys. */
const OF_KEYS = new Set(['mode', 'key', 'kind'])
const WINDOW = /^(?:burst|sustained|window (.+))$/

/** What the change of a bucket's quota means for its counters, as sentences; none if all count on as before. */
export function bucketCounters({ change, fields }: Change): string[] {
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
export function ruleCounters({ kind, change, fields }: RuleChange): string[] {
  return kind !== 'access' && change === 'changed' && startsAgain(fields) ? ['Its counters start again'] : []
}

/** The same for a setting of gateway.yaml. */
export function settingCounters({ field }: FieldChange): string[] {
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
