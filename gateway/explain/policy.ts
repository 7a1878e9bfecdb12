/** The effective policy, read from the tables that requests are matched by. */

import { unknownName } from '../../config/readable.js'
import type { PolicyOf } from '../admin/inspect.js'
import type { Configuration } from '../configured/load.js'
import { projectOf } from '../configured/projects.js'
import { NotFound } from '../errors.js'
import { methodsOf } from '../policy/policy.js'
import type { Project } from '../types.js'
import { explainedForNow } from './explained.js'

/** The answer to `GET /policy`. @throws {NotFound} */
export function policyOf(loaded: Configuration, of: PolicyOf): object {
  const { policy } = loaded.compiled
  const project = 'project' in of ? projectOf(loaded, of.project) : undefined
  const { plan, environment } = project ?? columnAsked(loaded, of as Omit<Project, 'id'>)
  const patterns = new Map(policy.buckets.map(bucket => [bucket.name, bucket.patterns]))
  const table = policy.tableOf({ id: project?.id ?? '', plan, environment })
  const buckets = [...(table?.rules.values() ?? [])].map(rule => ({
    bucket: rule.id,
    patterns: patterns.get(rule.id) ?? [],
    mode: rule.mode,
    ...explainedForNow(rule),
    ...(rule.share && { enforceFor: `${rule.share.percent}%` }),
    ...rule.config,
    onStoreError: rule.onStoreError,
    src: `${rule.source.file}:${rule.source.line}`,
  }))
  const rules = policy.rules.map(({ rule, match, when }) => ({
    methods: methodsOf({ rule, match }),
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    ...explainedForNow(rule),
    ...(rule.share && { enforceFor: `${rule.share.percent}%` }),
    match,
    key: rule.key,
    missing: rule.missing,
    onStoreError: rule.onStoreError,
    when: when ?? null,
    reads: rule.reads ?? false,
    settings: rule.config,
    src: `${rule.source.file}:${rule.source.line}`,
  }))
  return { revision: policy.revision, project: project?.id ?? null, plan, environment, buckets, rules }
}

/** @throws {NotFound} for words that projects.yaml does not declare */
function columnAsked({ config }: Configuration, asked: Omit<Project, 'id'>): Omit<Project, 'id'> {
  const { plans, environments } = config.planWords
  const check = (what: string, word: string, words: readonly string[]) => {
    if (!words.includes(word)) throw new NotFound(unknownName(what, word, new Set(words)))
  }
  check('plan', asked.plan, plans)
  check('environment', asked.environment, environments)
  return asked
}
