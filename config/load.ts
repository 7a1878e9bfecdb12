/** Reads gateway.yaml, the projects and the policy files, and reports the problems of all files at once. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkCertificates, resolveCertificates } from './checks/certificates.js'
import { checkConfig, withEmbeddedCookies } from './checks/checks.js'
import { expand } from './environment.js'
import { ConfigFiles, fileBeside, gatewayFileOf, reasonOf } from './files.js'
import { type Sources, whyNotRead } from './marks.js'
import {
  formatPath,
  listed,
  nearest,
  type Path,
  type Place,
  type Problem,
  type UnplacedProblem,
} from './problem.js'
import { ACCESS } from './schema/access.js'
import type { Gateway } from './schema/gateway.js'
import type { PluginSchemas } from './schema/plugin.js'
import type { ProjectEntry } from './schema/projects.js'
import { quoted } from './sentences.js'
import type { AccessPolicy, Config, PolicyFile } from './types.js'
import { type Validator, type Validators, validatorsOf } from './validate.js'
import { PROJECT_LIMITS } from './words/bucket.js'
import { ENVIRONMENTS, PLANS, type PlanWords } from './words/words.js'
import { parseYaml, type YamlFile } from './yaml.js'

export type { AccessPolicy, Config, PolicyFile, ProjectLimitsPolicy, RulesPolicy } from './types.js'
export { isProjectLimits, problemAt } from './types.js'

export interface ConfigOptions {
  readonly env: NodeJS.ProcessEnv
  readonly plugins: PluginSchemas
  /** A folder of policies to read instead of the one that gateway.yaml names. */
  readonly policies?: string | undefined
  /** Files that have been read already; default: read from disk. */
  readonly files?: ConfigFiles
}

export type LoadedConfig = ({ readonly config: Config } | { readonly problems: Problem[] }) & {
  readonly sources: Sources
}

/** Loads the configuration at `path`: gateway.yaml or its folder. Reads files only; never throws on what they hold. */
export function loadConfig(path: string, options: ConfigOptions): LoadedConfig {
  const loader = new Loader(options)
  const loaded = loader.load(gatewayFileOf(path))
  return { ...loaded, sources: loader.disk.sources }
}

class Loader {
  readonly #env: NodeJS.ProcessEnv
  readonly #policiesInstead: string | undefined
  readonly disk: ConfigFiles
  readonly #validators: Validators
  readonly #files = new Map<string, YamlFile>()
  readonly #written = new Map<string, unknown>()
  readonly #problems: Problem[] = []
  /** False once a file that may define buckets has problems of its own. */
  #bucketsKnown = true

  constructor(options: ConfigOptions) {
    this.#env = options.env
    this.#policiesInstead = options.policies
    this.disk = options.files ?? new ConfigFiles()
    this.#validators = validatorsOf(options.plugins)
  }

  load(gatewayFile: string): { config: Config } | { problems: Problem[] } {
    const settings = this.#read(gatewayFile)
    const named = this.#files.get(gatewayFile)
    if (named === undefined) return { problems: this.#problems }
    const valid = this.#validate<Gateway>(gatewayFile, settings, this.#validators.gateway)
    const gateway =
      valid && withEmbeddedCookies(resolveCertificates(valid, name => fileBeside(gatewayFile, name)))
    for (const fault of gateway ? checkCertificates(gateway, file => this.disk.text(file)) : []) {
      this.#report(gatewayFile, fault)
    }

    // If gateway.yaml is not even YAML, the other files are looked for under their usual names.
    const isGuess = named.data === undefined
    const projectsFile = besideOf(gatewayFile, named.data, 'projects', 'projects.yaml')
    const list = isGuess && !existsSync(projectsFile) ? undefined : this.#read(projectsFile)
    const projects = this.#validate<{ projects: ProjectEntry[] }>(
      projectsFile,
      list,
      this.#validators.projects,
    )?.projects
    const planWords = this.#planWords(projectsFile, list)
    const folder = this.#policiesInstead ?? besideOf(gatewayFile, named.data, 'policies', 'policies')
    const files = isGuess && !existsSync(folder) ? [] : this.#policies(gatewayFile, folder)
    const access = files.filter((file): file is AccessPolicy => file.kind === ACCESS)
    const policies = files.filter((file): file is PolicyFile => file.kind !== ACCESS)

    const locate = (file: string, path: Path): Place => this.#place(file, path)
    const found = { gatewayFile, projectsFile, policies, access, locate }
    const faults = checkConfig({
      ...{ ...found, gateway, projects, planWords },
      written: this.#written,
      bucketsKnown: this.#bucketsKnown,
      variablesOf: (file: string, path: Path) => this.#variablesOf(file, path),
    })
    for (const { file, ...fault } of faults) this.#report(file, fault)
    if (!gateway || !projects || !planWords || this.#problems.length > 0)
      return { problems: this.#problems.sort(byPlace) }
    return { config: { ...found, gateway, projects, planWords } }
  }

  /** Every *.yaml of the folder that is valid by itself. */
  #policies(gatewayFile: string, folder: string): (PolicyFile | AccessPolicy)[] {
    return this.#list(gatewayFile, folder).flatMap(name => this.#policy(join(folder, name)) ?? [])
  }

  #list(gatewayFile: string, folder: string): string[] {
    try {
      const names = this.disk.list(folder)
      return names.filter(name => {
        const message = whyNotRead(name)
        if (message !== undefined) this.#report(join(folder, name), { path: [], message })
        return message === undefined
      })
    } catch (error) {
      const message = `The folder ${folder} cannot be read: ${reasonOf(error)}.`
      this.#report(gatewayFile, { path: ['policies'], message })
      return []
    }
  }

  #policy(file: string): PolicyFile | AccessPolicy | undefined {
    const { policies } = this.#validators
    const data = this.#read(file)
    const kind = (data as { kind?: unknown } | null | undefined)?.kind
    const validator = typeof kind === 'string' ? policies.get(kind) : undefined
    if (data !== undefined && validator === undefined) {
      this.#report(file, { path: ['kind'], message: unknownKind(kind, [...policies.keys()]) })
    }
    const document =
      validator && this.#validate<(PolicyFile | AccessPolicy)['document']>(file, data, validator)
    if (document !== undefined) return { file, kind, document } as PolicyFile | AccessPolicy
    if (validator === undefined || kind === PROJECT_LIMITS) this.#bucketsKnown = false
    return undefined
  }

  /** The file's data, or undefined when it is not readable, well-formed text. */
  #read(file: string): unknown {
    const read = this.disk.text(file)
    if ('fault' in read) {
      this.#report(file, { path: [], message: read.fault })
      return undefined
    }
    const parsed = parseYaml(read.text, scalar => expand(scalar, this.#env, named => this.disk.secret(named)))
    this.#files.set(file, parsed)
    for (const { line, col, path, message } of parsed.faults) {
      this.#problems.push({ file, line, col, path: formatPath(path), message })
    }
    if (parsed.faults.length > 0) return undefined
    this.#written.set(file, parsed.data)
    return parsed.data
  }

  #validate<Valid>(file: string, data: unknown, validator: Validator): Valid | undefined {
    if (data === undefined) return undefined
    const faults = validator(data, path => this.#variablesOf(file, path))
    for (const fault of faults) this.#report(file, fault)
    return faults.length === 0 ? (data as Valid) : undefined
  }

  /** Usable even if the file has other faults, so that references from other files can still be checked. */
  #planWords(file: string, data: unknown): PlanWords | undefined {
    const isDeclaration = ({ file: where, path }: Problem) =>
      where === file && /^(plans|environments)\b/.test(path)
    if (typeof data !== 'object' || data === null || this.#problems.some(isDeclaration)) return undefined
    const { plans = PLANS, environments = ENVIRONMENTS } = data as Partial<PlanWords>
    return { plans, environments }
  }

  #variablesOf(file: string, path: Path): readonly string[] {
    return this.#files.get(file)?.variablesOf(path) ?? []
  }

  #report(file: string, { path, message, atKey }: UnplacedProblem): void {
    this.#problems.push({ ...this.#place(file, path, atKey), path: formatPath(path), message })
  }

  #place(file: string, path: Path, atKey?: boolean): Place {
    return { file, ...(this.#files.get(file)?.locate(path, atKey) ?? { line: 1, col: 1 }) }
  }
}

/** A file or folder that gateway.yaml names, or its usual name if gateway.yaml does not name it. */
export function besideOf(
  gatewayFile: string,
  written: unknown,
  key: 'projects' | 'policies',
  usual: string,
): string {
  const value = (written as Readonly<Record<string, unknown>> | null | undefined)?.[key]
  const named = typeof value === 'string' && value !== '' ? value : usual
  return fileBeside(gatewayFile, named)
}

function unknownKind(kind: unknown, kinds: readonly string[]): string {
  if (kind === undefined) return `The key "kind" is missing. Must be ${listed(kinds)}.`
  const meant = typeof kind === 'string' ? nearest(kind, kinds) : undefined
  const shown = typeof kind === 'string' ? ` "${quoted(kind)}"` : ''
  const help = meant === undefined ? `Must be ${listed(kinds)}.` : `Did you mean "${meant}"?`
  return `Unknown policy kind${shown}. ${help}`
}

function byPlace(a: Problem, b: Problem): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1
  return a.line - b.line || a.col - b.col
}
