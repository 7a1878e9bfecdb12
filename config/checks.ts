/** What no schema can say: names that must exist, be written once, or cover everything. Pure. */
import { isIPv4 } from 'node:net'
import { listed, nearest, type Path, type Place, type UnplacedProblem } from './problem.js'
import { quotaFaults, windowFaults } from './quota-schema.js'
import { checkRollout } from './rollout-checks.js'
import type { Gateway, ProjectEntry } from './schema.js'
import { isProjectLimits, type PolicyFile, type ProjectLimitsPolicy, type RulesPolicy } from './types.js'
import { columnsOf } from './words.js'

/** What was read; undefined stands for a document with problems of its own, whose contents are unknown. */
export interface Readable {
  readonly gatewayFile: string
  readonly projectsFile: string
  readonly gateway: Gateway | undefined
  readonly projects: readonly ProjectEntry[] | undefined
  readonly policies: readonly PolicyFile[]
  /** False while a file that may define buckets is not valid. */
  readonly bucketsKnown: boolean
  locate(file: string, path: Path): Place
}

interface FileFault extends UnplacedProblem {
  readonly file: string
}

/** The services that run inside this process. */
const EMBEDDED_SERVICES = ['directory', 'identity']

/** Every fault that shows only when the documents are seen together. */
export function checkConfig(read: Readable): FileFault[] {
  const limits = read.policies.filter(isProjectLimits)
  const rules = read.policies.filter((policy): policy is RulesPolicy => !isProjectLimits(policy))
  const buckets = read.bucketsKnown
    ? limits.flatMap(({ document }) => Object.keys(document.buckets))
    : undefined
  return [
    ...checkAdmin(read),
    ...checkWorkers(read),
    ...checkUpstreams(read),
    ...checkProjects(read, buckets),
    ...checkQuotas(limits, buckets),
    ...checkWindows(read, limits),
    ...checkNames(read, limits, rules),
    ...checkRollout(read.policies),
    ...limits.flatMap(policy => checkClaims(read, policy)),
    ...checkDoubleQuotas(read, limits),
    ...(buckets === undefined ? [] : checkCoverage(limits)),
  ]
}

/** What stands there must not be open to a network. */
function checkAdmin({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.admin.key !== '' || isLoopback(gateway.admin.host)) return []
  const message = `The admin port on ${gateway.admin.host} needs a key: set admin.key, such as "\${ADMIN_KEY:-}" with ADMIN_KEY or ADMIN_KEY_FILE in the environment, or listen on 127.0.0.1.`
  return [{ file, path: ['admin', 'host'], message }]
}

/** Also for `auto` on one core: the same file must not be right on one machine and wrong on another. */
function checkWorkers({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.listen.workers === 1 || gateway.redis !== '') return []
  const message = `Several workers need Redis, where they count together: set redis, such as "\${REDIS_URL:-}" with REDIS_URL in the environment, or write workers: 1.`
  return [{ file, path: ['listen', 'workers'], message }]
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function checkUpstreams({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined) return []
  const names = Object.keys(gateway.upstreams)
  const faults: FileFault[] = []
  for (const [name, upstream] of Object.entries(gateway.upstreams)) {
    if ('embedded' in upstream && !EMBEDDED_SERVICES.includes(upstream.embedded)) {
      const message = unknown('embedded service', upstream.embedded, EMBEDDED_SERVICES)
      faults.push({ file, path: ['upstreams', name, 'embedded'], message })
    }
  }
  for (const [i, { upstream }] of gateway.routes.entries()) {
    if (names.includes(upstream)) continue
    faults.push({ file, path: ['routes', i, 'upstream'], message: unknown('upstream', upstream, names) })
  }
  return faults
}

function checkProjects(read: Readable, buckets: readonly string[] | undefined): FileFault[] {
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
      paths.claim(file, at('paths', j), path.replace(/(?!^)\/+$/, ''))
    }
    for (const [j, hash] of project.apiKeyHashes.entries()) keys.claim(file, at('apiKeyHashes', j), hash, '')
    for (const bucket of Object.keys(project.overrides)) {
      if (buckets === undefined || buckets.includes(bucket)) continue
      faults.push({
        file,
        path: at('overrides', bucket),
        atKey: true,
        message: unknown('bucket', bucket, buckets),
      })
    }
  }
  return [...faults, ...ids.faults, ...hosts.faults, ...paths.faults, ...keys.faults]
}

function checkQuotas(
  limits: readonly ProjectLimitsPolicy[],
  buckets: readonly string[] | undefined,
): FileFault[] {
  if (buckets === undefined) return []
  return limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.keys(quotas)
        .filter(bucket => !buckets.includes(bucket))
        .map(bucket => ({
          file,
          path: ['limits', i, 'quotas', bucket],
          atKey: true,
          message: unknown('bucket', bucket, buckets),
        })),
    ),
  )
}

/** What is wrong in the quotas themselves, of rows and of overrides. */
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
  rules: readonly RulesPolicy[],
): FileFault[] {
  const names = new Owners(read, 'The name')
  for (const { file, document } of limits) {
    for (const name of Object.keys(document.buckets)) names.claim(file, ['buckets', name], name)
  }
  for (const { file, document } of rules) {
    for (const [i, { id }] of document.rules.entries()) names.claim(file, ['rules', i, 'id'], id)
  }
  return names.faults
}

function checkClaims(read: Readable, { file, document }: ProjectLimitsPolicy): FileFault[] {
  const claims = new Map<string, number>()
  const faults: FileFault[] = []
  for (const [i, row] of document.limits.entries()) {
    for (const column of columnsOf(row.for)) {
      const first = claims.get(column)
      if (first === undefined) claims.set(column, i)
      else {
        const path = ['limits', i, 'for']
        const lines = `line ${read.locate(file, ['limits', first, 'for']).line} and line ${read.locate(file, path).line}`
        faults.push({
          file,
          path,
          message: `Two rows claim (${spoken(column)}): ${lines}. Remove it from one of them.`,
        })
      }
    }
  }
  return faults
}

/**
 * Two files may each add buckets to one plan and environment, but not two quotas to one bucket, whatever their modes: logs
 * and metrics go by the name, so a quota that is tried beside another has a bucket of its own.
 */
function checkDoubleQuotas(read: Readable, limits: readonly ProjectLimitsPolicy[]): FileFault[] {
  const owners = new Map<string, { readonly file: string; readonly path: Path }>()
  const faults: FileFault[] = []
  const rows = limits.flatMap(({ file, document }) => document.limits.map((row, i) => ({ file, row, i })))
  for (const { file, row, i } of rows) {
    for (const bucket of Object.keys(row.quotas)) {
      const path = ['limits', i, 'quotas', bucket]
      const columns = [...columnsOf(row.for)]
      // Two rows of one file are told of by their claims.
      const taken = columns.find(column => (owners.get(`${bucket} ${column}`)?.file ?? file) !== file)
      const owner = owners.get(`${bucket} ${taken}`)
      if (owner !== undefined) {
        const where = placeText(read.locate(owner.file, owner.path))
        const message = `Bucket "${bucket}" already has a quota for (${spoken(String(taken))}) at ${where}.`
        faults.push({ file, path, atKey: true, message })
      }
      for (const column of columns) {
        if (!owners.has(`${bucket} ${column}`)) owners.set(`${bucket} ${column}`, { file, path })
      }
    }
  }
  return faults
}

/** Where something is enforced nobody may be forgotten. What only reports may be tried on some alone, and covers nobody. */
function checkCoverage(limits: readonly ProjectLimitsPolicy[]): FileFault[] {
  const enforced = limits.filter(({ document }) => document.mode === 'enforce')
  const [first] = enforced
  if (first === undefined) return []
  const covered = new Set(
    enforced.flatMap(({ document }) => document.limits.flatMap(row => [...columnsOf(row.for)])),
  )
  const missing = [...columnsOf([{}])]
    .filter(column => !covered.has(column))
    .map(column => `(${spoken(column)})`)
  if (missing.length === 0) return []
  const message = `No row covers ${listed(missing, 'and')}. Add ${missing.length === 1 ? 'it' : 'them'} to a row's "for".`
  return [{ file: first.file, path: ['limits'], message }]
}

/** Values that only one place may hold. */
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

/** `growth, production`. */
const spoken = (column: string): string => column.replace('/', ', ')
const placeText = ({ file, line }: Place): string => `${file}:${line}`

function unknown(what: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known)
  if (meant !== undefined) return `Unknown ${what} "${name}". Did you mean "${meant}"?`
  return `Unknown ${what} "${name}". ${known.length === 0 ? 'None is defined.' : `Must be ${listed(known)}.`}`
}
