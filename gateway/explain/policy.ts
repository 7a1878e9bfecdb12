/** The policy that counts in the end, as the tables hold it that requests are matched by. */
import { isProjectLimits } from '../../config/load.js'
import { pluginConfig, type RuleEntry } from '../../config/policy-schema.js'
import { NotFound, type PolicyOf } from '../admin/inspect.js'
import { columnName, type Table } from '../policy/policy.js'
import type { Loaded } from '../run/load.js'
import type { Environment, Plan, Project, Rule } from '../types.js'

/** What `GET /policy` says. @throws {NotFound} */
export function policyOf(loaded: Loaded, of: PolicyOf): object {
  const { config, compiled } = loaded
  const project = 'project' in of ? projectOf(loaded, of.project) : undefined
  const { plan, environment } = project ?? (of as { plan: Plan; environment: Environment })
  const patterns = new Map(
    config.policies.filter(isProjectLimits).flatMap(({ document }) => Object.entries(document.buckets)),
  )
  const table = tableOf(loaded, { id: project?.id ?? '', plan, environment })
  const buckets = [...(table?.rules.values() ?? [])].map(
    ({ id, mode, onStoreError, config: quota, source }) => ({
      bucket: id,
      patterns: patterns.get(id) ?? [],
      mode,
      ...(quota as object),
      onStoreError,
      src: `${source.file}:${source.line}`,
    }),
  )
  const rules = endpointRules(loaded).map(({ rule, entry }) => ({
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    match: entry.match,
    key: rule.key,
    missing: rule.missing,
    onStoreError: rule.onStoreError,
    settings: pluginConfig(entry),
    src: `${rule.source.file}:${rule.source.line}`,
  }))
  return { revision: compiled.revision, project: project?.id ?? null, plan, environment, buckets, rules }
}

/** @throws {NotFound} */
export function projectOf({ config }: Loaded, id: string): Project {
  const project = config.projects.find(one => one.id === id)
  if (project === undefined) throw new NotFound(`There is no project "${id}" in this configuration.`)
  return { id, plan: project.plan, environment: project.environment }
}

/** The buckets that count for a project. */
export function tableOf(
  { compiled: { tables } }: Loaded,
  { id, plan, environment }: Project,
): Table | undefined {
  return tables.projects.get(id) ?? tables.columns.get(columnName(plan, environment))
}

/** The rules that stand by themselves, as they are compiled and as they are written. */
export function endpointRules({ config }: Loaded): { rule: Rule; entry: RuleEntry }[] {
  return config.policies.flatMap(policy => {
    if (isProjectLimits(policy)) return []
    const { file, kind, document } = policy
    return document.rules.map((entry, i) => {
      const { id, mode, key, missing, onStoreError = config.gateway.store.onError } = entry
      const source = { file, line: config.locate(file, ['rules', i]).line }
      return { entry, rule: { id, kind, mode, key, missing, onStoreError, config: entry, source } }
    })
  })
}
