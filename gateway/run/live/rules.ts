/** The rules in force for the live data, in the order of the files. */

import { isProjectLimits } from '../../../config/load.js'
import { keyOf } from '../../../config/words/bucket.js'
import { RUNTIME_SERIES } from '../../../config/words/reserved-names.js'
import { trialName } from '../../../config/words/share.js'
import { UNLIMITED } from '../../../config/words/words.js'
import type { LiveRule } from '../../admin/live-snapshot.js'
import { placeOf } from '../../compiled-rule.js'
import type { Configuration } from '../../configured/load.js'
import { methodsOf } from '../../policy/policy.js'
import type { Mode, Rule } from '../../types.js'

/** A rule without its counts. */
export type ListedRule = Omit<LiveRule, 'rates' | 'last_hour' | 'waiting'>

/** All access entries set on the admin port, as one rule. */
export const RUNTIME_ACCESS: ListedRule = {
  ...{ id: RUNTIME_SERIES, kind: 'access', src: '/access', key: [], trial: false },
  ...{ mode: 'enforce', declared_mode: 'enforce' },
}

const listed = new WeakMap<Configuration, readonly ListedRule[]>()

/** Buckets with their trials, rules and access entries; computed once for each configuration. */
export function rulesOf(loaded: Configuration): readonly ListedRule[] {
  const known = listed.get(loaded) ?? [...listRules(loaded)]
  listed.set(loaded, known)
  return known
}

function* listRules(loaded: Configuration): Generator<ListedRule> {
  const { config, compiled } = loaded
  const buckets = bucketRules(loaded)
  const trials = new Set(trialsOf(loaded))
  const rules = new Map(compiled.policy.rules.map(one => [one.rule.id, one]))
  for (const policy of config.policies) {
    const { file, kind, document } = policy
    if (isProjectLimits(policy)) {
      for (const [id, entry] of Object.entries(policy.document.buckets)) {
        const { line } = config.locate(file, ['buckets', id])
        const rule = buckets.get(id)
        const bucket = { id, kind, src: `${file}:${line}`, key: keyOf(entry) }
        const declared_mode = policy.document.mode
        yield { ...bucket, ...modesOf(rule, declared_mode), trial: false }
        if (trials.has(id))
          yield {
            ...bucket,
            id: trialName(id),
            mode: 'report-only',
            declared_mode: 'report-only',
            trial: true,
          }
      }
    } else if ('rules' in document) {
      for (const { id, mode } of document.rules) {
        const one = rules.get(id)
        if (one === undefined) continue
        const { rule } = one
        const methods = methodsOf(one)
        yield { ...described(rule), methods, ...modesOf(rule, mode), trial: false }
        const tried = rules.get(trialName(id))?.rule
        if (tried !== undefined)
          yield { ...described(tried), methods, ...modesOf(tried, tried.mode), trial: true }
      }
    }
  }
  for (const { rule } of compiled.access.entries)
    yield { ...described(rule), ...modesOf(rule, rule.forNow?.declared ?? rule.mode), trial: false }
}

function described({ id, kind, key, source }: Rule) {
  return { id, kind, src: placeOf(source), key }
}

function modesOf(rule: Rule | undefined, declared: Mode) {
  const share = rule?.share
  return { mode: rule?.mode ?? declared, declared_mode: declared, ...(share && { share }) }
}

/** One rule for each bucket that has a quota: its mode is the same in every plan and environment. */
function bucketRules({ compiled }: Configuration): Map<string, Rule> {
  const { columns, current } = compiled.policy
  const rules = [...columns.values()].flatMap(table => [...table.rules])
  return new Map(rules.map(([id, rule]) => [id, current(rule)]))
}

function* trialsOf({ compiled: { policy } }: Configuration): Generator<string> {
  for (const { trials } of [...policy.columns.values(), ...policy.projects.values()])
    yield* trials?.keys() ?? []
  for (const { bucket, quota } of policy.forNow.quotas ?? []) {
    if (quota !== UNLIMITED && quota.trial !== undefined) yield bucket
  }
}
