/** The effective policy, read from the tables that requests are matched by. */
import { pluginConfig, type RuleEntry } from '../../config/policy-schema.js'
import { unknownHostFault } from '../../config/project-names.js'
import { unknownName } from '../../config/readable.js'
import { columnOfUnknown } from '../../config/words.js'
import type { PolicyOf } from '../admin/inspect.js'
import { NotFound } from '../admin/refusals.js'
import { BY_HOST, unknownHostProject } from '../identify/identify.js'
import type { Loaded } from '../run/load.js'
import type { Project } from '../types.js'
import { explainedForNow } from './explained.js'

/** The answer to `GET /policy`. @throws {NotFound} */
export function policyOf(loaded: Loaded, of: PolicyOf): object {
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
    ...(rule.config as object),
    onStoreError: rule.onStoreError,
    src: `${rule.source.file}:${rule.source.line}`,
  }))
  const rules = policy.rules.map(({ rule, match }) => ({
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    ...explainedForNow(rule),
    ...(rule.share && { enforceFor: `${rule.share.percent}%` }),
    match,
    key: rule.key,
    missing: rule.missing,
    onStoreError: rule.onStoreError,
    when: (rule.config as RuleEntry).when ?? null,
    reads: rule.reads ?? false,
    settings: pluginConfig(rule.config as RuleEntry),
    src: `${rule.source.file}:${rule.source.line}`,
  }))
  return { revision: policy.revision, project: project?.id ?? null, plan, environment, buckets, rules }
}

/** @throws {NotFound} for words that projects.yaml does not declare */
function columnAsked({ config }: Loaded, asked: Omit<Project, 'id'>): Omit<Project, 'id'> {
  const { plans, environments } = config.planWords
  const told = (what: string, word: string, words: readonly string[]) => {
    if (!words.includes(word)) throw new NotFound(unknownName(what, word, new Set(words)))
  }
  told('plan', asked.plan, plans)
  told('environment', asked.environment, environments)
  return asked
}

/**
 * The project with an id: a configured one, or `host:NAME`, by which requests of unknown hosts are counted.
 * @throws {NotFound}
 */
export function projectOf({ config }: Loaded, id: string): Project {
  const project = config.projects.find(one => one.id === id)
  if (project !== undefined) return { id, plan: project.plan, environment: project.environment }
  const column = columnOfUnknown(config.gateway.unknownProject)
  const fault = unknownHostFault(id)
  if (fault !== undefined) throw new NotFound(fault)
  if (id.startsWith(BY_HOST) && column !== undefined) {
    return unknownHostProject(id.slice(BY_HOST.length), column)
  }
  throw new NotFound(`There is no project "${id}" in this configuration.`)
}
