/** What the admin port tells of policy and counters, by the tables and counters that requests meet. */
import { isIP } from 'node:net'
import { isProjectLimits } from '../config/load.js'
import { pluginConfig, type RuleEntry } from '../config/policy-schema.js'
import { listed } from '../config/problem.js'
import type { Gateway } from '../config/schema.js'
import {
  type CounterName,
  type Inspected,
  NotFound,
  type PolicyOf,
  Unnamed,
  Unreachable,
} from './admin/inspect.js'
import type { HeldSlots } from './decide/held-slots.js'
import { counterKey } from './decide/key.js'
import { type Counters, lookingDecider } from './decide/look.js'
import { GatewayError } from './errors.js'
import { TrustedProxies } from './listen/client.js'
import { readFacts } from './listen/facts.js'
import { requestOf } from './listen/written.js'
import type { Loaded } from './load.js'
import { columnName, type Table } from './match/policy.js'
import type { Environment, Facts, Log, Outcome, Plan, Project, Rule } from './types.js'

export interface InspectOptions {
  /** What is in force. */
  loaded(): Loaded
  readonly counters: Counters
  readonly held: HeldSlots
  /** Keys the hashes that stand for personal data. */
  /** Forgets what was counted by a key. */
  forget(key: string): Promise<void>
  readonly log: Log
}

const MOST_SLOTS = 1000

export function inspect(options: InspectOptions): Inspected {
  const { loaded, held } = options
  return {
    policy: of => policyOf(loaded(), of),
    counters: id => countersOf(loaded(), options.counters, id),
    slots: () => held.oldest(MOST_SLOTS),
    reset: name => reset(name, options),
  }
}

/** Addresses of the documents that the embedded services have behind the data port at `url`; empty before it listens. */
export function serviceDocuments({ upstreams }: Gateway, url: string): Record<string, string> {
  if (url === '') return {}
  const served = Object.values(upstreams).flatMap(one => ('embedded' in one ? [one.embedded] : []))
  return Object.fromEntries(
    Object.entries(DOCUMENTS)
      .filter(([service]) => served.includes(service))
      .map(([service, path]) => [service, url + path]),
  )
}

const DOCUMENTS = { directory: '/api/v1/docs' }

function policyOf(loaded: Loaded, of: PolicyOf): object {
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

/** Kinds whose rules count one for a request, so that what was counted before it is known. */
const COUNTS_ONE = ['project-limits', 'in-flight', 'volumetric']

async function countersOf(loaded: Loaded, counters: Counters, id: string): Promise<object> {
  const project = projectOf(loaded, id)
  const buckets = [...(tableOf(loaded, project)?.rules.values() ?? [])]
  const others = endpointRules(loaded).map(({ rule }) => rule)
  const ownKey = (rule: Rule) => rule.key.every(part => part === 'project') && COUNTS_ONE.includes(rule.kind)
  const shown = [...buckets, ...others.filter(ownKey)]
  const facts = factsOf(loaded, {})
  const told = await Promise.all(shown.map(rule => countersOfRule(rule, { counters, project, facts })))
  return {
    project: id,
    plan: project.plan,
    environment: project.environment,
    counters: told,
    // Their counters are as many as the requests' keys.
    not_shown: others.filter(rule => !ownKey(rule)).map(rule => rule.id),
  }
}

async function countersOfRule(
  rule: Rule,
  { counters, project, facts }: { counters: Counters; project: Project; facts: Facts },
): Promise<object> {
  const verdict = await lookingDecider(counters).decide({ facts, project, matched: [{ rule, route: '/' }] })
  await verdict.settled
  const [outcome] = [...verdict.outcomes, ...verdict.reportOnly]
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    src: `${rule.source.file}:${rule.source.line}`,
    store: outcome?.store ?? null,
    counters: (outcome?.readings ?? []).map(({ policy, quota, windowMs, used, resetMs, violated }) => {
      // A look tells what one more request would find.
      const spent = used === undefined ? null : used - (isIncluded(rule, outcome) ? 1 : 0)
      const left = spent === null ? null : Math.max(0, quota - spent)
      return {
        policy,
        q: quota,
        w_ms: windowMs ?? null,
        used: spent,
        left,
        t_ms: Math.ceil(resetMs),
        violated,
      }
    }),
  }
}

/** A window that counts refused requests, too, has the one that only looked in it. */
function isIncluded({ kind }: Rule, outcome: Outcome | undefined): boolean {
  return kind === 'volumetric' || outcome?.result === 'allowed'
}

async function reset(name: CounterName, { loaded, forget, log }: InspectOptions): Promise<object> {
  const { rule, key } = counterOf(name, loaded())
  await forget(key).catch(error => {
    throw new Unreachable('Redis cannot be told: the counter is as it was.', { cause: error })
  })
  // A warning, so that it is written whatever is left out.
  log.warn(
    { audit: 'counter-reset', rule: rule.id, project: name.project ?? null },
    'A counter was reset by the admin API',
  )
  return { reset: rule.id, key }
}

/** The parts of a key that a question can name, and how. */
const NAMEABLE: Readonly<Record<string, readonly (keyof CounterName)[]>> = {
  project: ['project'],
  path: ['method', 'path'],
  'full-path': ['path'],
  'client-ip': ['ip'],
  method: ['method'],
}

function counterOf(name: CounterName, loaded: Loaded): { rule: Rule; key: string } {
  const project = name.project === undefined ? undefined : projectOf(loaded, name.project)
  const bucket = project && tableOf(loaded, project)?.rules.get(name.rule)
  const rule = bucket ?? endpointRules(loaded).find(one => one.rule.id === name.rule)?.rule
  if (rule === undefined) {
    const help = project === undefined ? ' Name the project of a bucket.' : ''
    throw new NotFound(`There is no bucket or rule "${name.rule}" here.${help}`)
  }
  const unnameable = rule.key.find(part => NAMEABLE[part] === undefined)
  if (unnameable !== undefined) {
    throw new Unnamed(`The key of "${rule.id}" has the part "${unnameable}", which nobody can name.`)
  }
  const wanted = new Set(rule.key.flatMap(part => NAMEABLE[part] ?? []))
  const missing = [...wanted].filter(part => name[part] === undefined)
  if (missing.length > 0)
    throw new Unnamed(`Give ${listed(missing, 'and')}: "${rule.id}" counts by ${listed(rule.key, 'and')}.`)
  const facts = factsOf(loaded, name)
  const caller = project ?? NOBODY
  const matched = loaded.compiled.snapshot(new Map()).match(facts, caller)
  const route = matched.find(one => one.rule.id === rule.id)?.route
  if (route === undefined && rule.key.includes('path')) {
    throw new Unnamed(`"${rule.id}" does not look at ${name.method} ${name.path}.`)
  }
  const key = counterKey(rule, {
    facts,
    project: caller,
    route: route ?? '/',
    emailOrFlow: undefined,
  })
  if (key === undefined) throw new Unnamed(`Such a request has no counter of "${rule.id}".`)
  return { rule, key }
}

const NOBODY: Project = { id: 'nobody', plan: 'developer', environment: 'production' }

/** The facts of a request that is not made. @throws {Unnamed} when it could not be made */
function factsOf(
  { config }: Loaded,
  { method = 'GET', path = '/', ip = '127.0.0.1' }: Omit<CounterName, 'rule'>,
): Facts {
  if (isIP(ip) === 0) throw new Unnamed(`"${ip}" is no IP address.`)
  try {
    const req = requestOf({ method, target: path, fields: ['Host', 'localhost'], peer: ip })
    const { fingerprintHeaders } = config.gateway
    return readFacts(req, { trusted: new TrustedProxies([]), fingerprintHeaders })
  } catch (error) {
    if (error instanceof GatewayError)
      throw new Unnamed(`There can be no request ${method} ${path}: ${error.message}`)
    throw error
  }
}

function projectOf({ config }: Loaded, id: string): Project {
  const project = config.projects.find(one => one.id === id)
  if (project === undefined) throw new NotFound(`There is no project "${id}" in this configuration.`)
  return { id, plan: project.plan, environment: project.environment }
}

function tableOf({ compiled: { tables } }: Loaded, { id, plan, environment }: Project): Table | undefined {
  return tables.projects.get(id) ?? tables.columns.get(columnName(plan, environment))
}

/** The rules that stand by themselves, as they are compiled and as they are written. */
function endpointRules({ config }: Loaded): { rule: Rule; entry: RuleEntry }[] {
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
