/** Checks that a schema cannot express: names that must exist, be unique, or cover everything. Pure. */
import { type Path, placeText, unknownName } from '../problem.js'
import type { Gateway } from '../schema/gateway.js'
import { quotaFaults, windowFaults } from '../schema/quota.js'
import {
  type AccessPolicy,
  type FileFault,
  isProjectLimits,
  type ProjectLimitsPolicy,
  type Readable,
  type RulesPolicy,
} from '../types.js'
import { reservedNameFault } from '../words/reserved-names.js'
import { checkColumns } from './columns.js'
import { checkListeners } from './listen-host.js'
import { checkPlans } from './plans.js'
import { checkReserves } from './reserves.js'
import { checkRoutes } from './routes.js'
import { checkAccess, checkRules, checkShares, checkWaits } from './rules.js'
import { upstreamFaults } from './upstreams.js'

/** Every fault that only shows when all documents are checked together. */
export function checkConfig(read: Readable): FileFault[] {
  const limits = read.policies.filter(isProjectLimits)
  const rules = read.policies.filter((policy): policy is RulesPolicy => !isProjectLimits(policy))
  const buckets = read.bucketsKnown
    ? new Set(limits.flatMap(({ document }) => Object.keys(document.buckets)))
    : undefined
  const { planWords } = read
  const plans = planWords === undefined ? [] : checkPlans(read, planWords)
  return [
    ...checkListeners(read),
    ...checkUpstreams(read),
    ...checkRoutes(read),
    ...checkProjects(read, buckets),
    ...checkQuotas(limits, buckets),
    ...checkWindows(read, limits),
    ...checkNames(read, limits, [...rules, ...read.access]),
    ...checkShares(read.policies),
    ...checkReserves(limits),
    ...checkWaits(read.policies),
    ...checkRules(rules, read.projects),
    ...checkAccess(read.access, read.projects),
    ...plans,
    // If a word is misspelt, the columns its row then misses are only a consequence.
    ...(planWords === undefined || plans.length > 0 ? [] : checkColumns(read, limits, planWords)),
  ]
}

function checkUpstreams({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined) return []
  const faults: FileFault[] = []
  for (const [name, upstream] of Object.entries(gateway.upstreams)) {
    if ('embedded' in upstream && !EMBEDDED_SERVICES.has(upstream.embedded)) {
      const message = unknownName('embedded service', upstream.embedded, EMBEDDED_SERVICES)
      faults.push({ file, path: ['upstreams', name, 'embedded'], message })
    }
    for (const { path, message } of 'embedded' in upstream ? [] : upstreamFaults(upstream))
      faults.push({ file, path: ['upstreams', name, ...path], message })
  }
  return faults
}

function checkProjects(read: Readable, buckets: ReadonlySet<string> | undefined): FileFault[] {
  const { projectsFile: file, projects = [] } = read
  const ids = new Owners(read, 'Project id')
  const hosts = new Owners(read, 'Host')
  const paths = new Owners(read, 'Path')
  const keys = new Owners(read, 'This API key')
  const faults: FileFault[] = []
  for (const [i, project] of projects.entries()) {
    const at = (...rest: Path): Path => ['projects', i, ...rest]
    ids.claim(file, at('id'), project.id)
    for (const [j, host] of project.hosts.entries()) hosts.claim(file, at('hosts', j), host)
    for (const [j, path] of project.paths.entries()) {
      paths.claim(file, at('paths', j), path.replace(/(?<=^\/|[^/])\/+$/, ''))
    }
    for (const [j, hash] of project.apiKeyHashes.entries()) keys.claim(file, at('apiKeyHashes', j), hash, '')
    for (const bucket of Object.keys(project.overrides)) {
      if (buckets === undefined || buckets.has(bucket)) continue
      faults.push({
        file,
        path: at('overrides', bucket),
        atKey: true,
        message: unknownName('bucket', bucket, buckets),
      })
    }
  }
  return [...faults, ...ids.faults, ...hosts.faults, ...paths.faults, ...keys.faults]
}

function checkQuotas(
  limits: readonly ProjectLimitsPolicy[],
  buckets: ReadonlySet<string> | undefined,
): FileFault[] {
  if (buckets === undefined) return []
  return limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.keys(quotas)
        .filter(bucket => !buckets.has(bucket))
        .map(bucket => ({
          file,
          path: ['limits', i, 'quotas', bucket],
          atKey: true,
          message: unknownName('bucket', bucket, buckets),
        })),
    ),
  )
}

/** Faults in the quotas of rows and overrides. */
function checkWindows(
  { projects = [], projectsFile }: Readable,
  limits: readonly ProjectLimitsPolicy[],
): FileFault[] {
  const rows = limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas)
        .flatMap(([bucket, quota]) => quotaFaults(quota, ['limits', i, 'quotas', bucket]))
        .map(fault => ({ file, ...fault })),
    ),
  )
  const overrides = projects.flatMap(({ overrides }, i) =>
    Object.entries(overrides).flatMap(([bucket, quota]) =>
      windowFaults(quota, ['projects', i, 'overrides', bucket]),
    ),
  )
  return [...rows, ...overrides.map(fault => ({ file: projectsFile, ...fault }))]
}

/** Buckets and rules share one name space: counters, logs and metrics go by the name. */
function checkNames(
  read: Readable,
  limits: readonly ProjectLimitsPolicy[],
  rules: readonly (RulesPolicy | AccessPolicy)[],
): FileFault[] {
  const named = [
    ...limits.flatMap(({ file, document }) =>
      Object.keys(document.buckets).map(name => ({ file, path: ['buckets', name], name, atKey: true })),
    ),
    ...rules.flatMap(({ file, document }) =>
      document.rules.map(({ id }, i) => ({ file, path: ['rules', i, 'id'], name: id, atKey: false })),
    ),
  ]
  const owners = new Owners(read, 'The name')
  for (const { file, path, name } of named) owners.claim(file, path, name)
  const reserved = named.flatMap(({ name, ...place }) => {
    const message = reservedNameFault(name)
    return message === undefined ? [] : { ...place, message }
  })
  return [...owners.faults, ...reserved]
}

/** Tracks values that may occur only once, and reports repetitions. */
class Owners {
  readonly faults: FileFault[] = []
  readonly #read: Readable
  readonly #what: string
  readonly #owners = new Map<string, { readonly file: string; readonly path: Path }>()

  constructor(read: Readable, what: string) {
    this.#read = read
    this.#what = what
  }

  claim(file: string, path: Path, value: string, shown = ` "${value}"`): void {
    const owner = this.#owners.get(value)
    if (owner === undefined) {
      this.#owners.set(value, { file, path })
      return
    }
    const where = placeText(this.#read.locate(owner.file, owner.path))
    this.faults.push({ file, path, message: `${this.#what}${shown} is already used at ${where}.` })
  }
}

/** Each with the cookies by which it recognises its users. */
const SERVICES: Readonly<Record<string, readonly string[]>> = {
  directory: [],
  identity: ['sluice_identity'],
  welcome: [],
}

const EMBEDDED_SERVICES: ReadonlySet<string> = new Set(Object.keys(SERVICES))

/** Adds the cookies of the services that are upstreams to the credentials, so that no operator has to list them. */
export function withEmbeddedCookies(gateway: Gateway): Gateway {
  const { upstreams, credentials } = gateway
  const used = Object.values(upstreams).flatMap(one => ('embedded' in one ? [one.embedded] : []))
  const cookies = new Set([...credentials.cookies, ...used.flatMap(name => SERVICES[name] ?? [])])
  return { ...gateway, credentials: { ...credentials, cookies: [...cookies] } }
}
