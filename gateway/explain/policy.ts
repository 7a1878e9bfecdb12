/** The effective policy, read from the tables that requests are matched by. */
import { isIP } from 'node:net'
import { pluginConfig, type RuleEntry } from '../../config/policy-schema.js'
import { unknownHostFault } from '../../config/project-names.js'
import { unknownName } from '../../config/readable.js'
import {
  BY_CLIENT,
  BY_HOST,
  type CountUnknownBy,
  countsUnknownBy,
  isUnknownCaller,
  TOGETHER,
} from '../../config/words.js'
import type { PolicyOf } from '../admin/inspect.js'
import { NotFound } from '../admin/refusals.js'
import { unknownCallers } from '../identify/unknown.js'
import { clientAddress, networkOf, TrustedProxies } from '../listen/client.js'
import { methodsOf } from '../policy/policy.js'
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
  const check = (what: string, word: string, words: readonly string[]) => {
    if (!words.includes(word)) throw new NotFound(unknownName(what, word, new Set(words)))
  }
  check('plan', asked.plan, plans)
  check('environment', asked.environment, environments)
  return asked
}

/**
 * The project with an id: a configured one, or the unknown caller that the id stands for, such as `client:203.0.113.7`.
 * @throws {NotFound}
 */
export function projectOf({ config }: Loaded, id: string): Project {
  const project = config.projects.find(one => one.id === id)
  if (project !== undefined) return { id, plan: project.plan, environment: project.environment }
  const { unknownProject } = config.gateway
  const callerOf = unknownCallers(unknownProject, { takesApart: () => true })
  if (callerOf === undefined || !isUnknownCaller(id)) throw noProject(id)
  const by = countsUnknownBy(unknownProject)
  const caller = callerNamed(id, by)
  if (caller === undefined) throw new NotFound(HOW_TO_NAME[by])
  return callerOf(caller)
}

/** Checks that an access entry may name the id: a project, or `host:NAME` for unknown callers. @throws {NotFound} */
export function checkNamed({ config }: Loaded, id: string): void {
  const isHost = id.startsWith(BY_HOST) && config.gateway.unknownProject !== 'reject'
  if (!isHost && !config.projects.some(one => one.id === id)) throw noProject(id)
}

function noProject(id: string): NotFound {
  return new NotFound(`There is no project "${id}" in this configuration.`)
}

const HOW_TO_NAME: Readonly<Record<CountUnknownBy, string>> = {
  client:
    'Unknown projects are counted by client address here: write client:ADDRESS, such as client:203.0.113.7.',
  host: 'Unknown projects are counted by host here: write host:NAME, such as host:example.com.',
  together: `Unknown projects are counted together here: write ${TOGETHER}.`,
}

/** What the id says of a caller that is counted `by` it; undefined if the id is not of that kind. */
function callerNamed(id: string, by: CountUnknownBy): { host: string; network: string } | undefined {
  if (by === 'together') return id === TOGETHER ? { host: '', network: '' } : undefined
  if (by === 'client') {
    const address = id.startsWith(BY_CLIENT) ? id.slice(BY_CLIENT.length).replace(/\/64$/, '') : ''
    if (isIP(address) === 0) return undefined
    return { host: '', network: networkOf(clientAddress(address, undefined, new TrustedProxies([])).address) }
  }
  const fault = unknownHostFault(id)
  if (fault !== undefined) throw new NotFound(fault)
  return id.startsWith(BY_HOST) ? { host: id.slice(BY_HOST.length), network: '' } : undefined
}
