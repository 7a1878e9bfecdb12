/**
 * Collects the result of importing another gateway's configuration: files that `sluice check` accepts, and what they
 * cannot express.
 */
import { basename } from 'node:path'
import { formatPath, type Problem } from '../../config/problem.js'
import { PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { printable } from '../text.js'
import { type FileKind, faultIn } from './fits.js'
import { plainName } from './group.js'
import type { Origin, ProjectParts, RuleParts } from './parts.js'
import { Places } from './paths.js'
import type { WindowQuota } from './rate.js'
import { withoutSecret } from './without-secret.js'
import { From, yamlText } from './yaml-text.js'

/** The plan and environment of all projects without their own. */
export const ANY_PLAN = 'any'
const ENVIRONMENT = 'live'

export class Migration {
  readonly problems: Problem[] = []
  /** True when something was left out of the files. */
  hasLeftOut = false
  isUnreadable = false
  readonly #file: string
  readonly #names = new Map<string, Set<string>>()
  readonly #upstreams = new Map<string, From>()
  readonly #routes = new Map<string, { readonly upstream: string; readonly entry: From }>()
  readonly #projects = new Map<string, From>()
  readonly #plans = new Set([ANY_PLAN])
  readonly #rules: Record<'volumetric' | 'in-flight' | 'access', From[]> = {
    volumetric: [],
    'in-flight': [],
    access: [],
  }
  readonly #places = new Places()
  readonly #told = new Set<string>()
  #identify: (string | object)[] = ['host']
  #projectLimits: object | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** Reports something that the files cannot express, with the reason. */
  leftOut(at: Origin, sentence: string): void {
    this.hasLeftOut = true
    this.#tell(at, `Left out: ${sentence}`)
  }

  /** Reports why the file cannot be imported at all. */
  unreadable(at: Origin, sentence: string): void {
    this.isUnreadable = true
    this.#tell(at, sentence)
  }

  /** Reports something that the files express differently. */
  changed(at: Origin, sentence: string): void {
    this.#tell(at, `Not the same: ${sentence}`)
  }

  /** Like `changed`, but only the first time for each sentence. */
  changedOnce(at: Origin, sentence: string): void {
    if (this.isNew(sentence)) this.changed(at, sentence)
  }

  /** True the first time it is called with a text. */
  isNew(text: string): boolean {
    if (this.#told.has(text)) return false
    this.#told.add(text)
    return true
  }

  #tell({ line, col, path = [], file = this.#file }: Origin, message: string): void {
    this.problems.push({ file, line, col, path: formatPath(path), message })
  }

  /** A valid name for an upstream, rule or bucket; a different one for each call. */
  nameFor(kind: 'upstream' | 'rule' | 'bucket', text: string): string {
    const taken = this.#names.get(kind) ?? new Set()
    this.#names.set(kind, taken)
    const plain = plainName(text)
    let name = plain
    for (let i = 2; taken.has(name); i++) name = `${plain.slice(0, 58)}-${i}`
    taken.add(name)
    return name
  }

  /** Records a route, location or router, whatever limits it has. */
  place(match: readonly string[], hosts: readonly string[] = []): void {
    this.#places.add(match, hosts)
  }

  /** Adds an upstream by its addresses and returns its name; undefined when none can be used. */
  upstream(name: string, addresses: readonly string[], at: Origin): string | undefined {
    const origins = addresses.flatMap(address => {
      const url = URL.canParse(address) ? new URL(address) : undefined
      if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') {
        this.leftOut(at, `"${withoutSecret(address)}" is not an http:// or https:// address.`)
        return []
      }
      if (url.username !== '' || url.password !== '') {
        this.leftOut(at, `the user and password of ${url.origin}. Let the clients send them.`)
      }
      if (url.pathname !== '/' || url.search !== '') {
        this.leftOut(
          at,
          `the path of ${withoutSecret(address)}. Requests reach the upstream with the path they came with.`,
        )
      }
      return [url.origin]
    })
    if (origins.length === 0) return undefined
    const unique = this.nameFor('upstream', name.replace(/^.*@/, ''))
    const entry = origins.length === 1 ? { url: origins[0] } : { urls: [...new Set(origins)] }
    this.#upstreams.set(unique, new From(this.#place(at), entry))
    return unique
  }

  /** Sends a path pattern to an upstream. Routes go by path alone, so of two for one path the first is kept. */
  route(path: string, upstream: string, at: Origin): void {
    if (!this.isPattern(path, at)) return
    const present = this.#routes.get(path)
    if (present === undefined) {
      this.#routes.set(path, { upstream, entry: new From(this.#place(at), { path, upstream }) })
    } else if (present.upstream !== upstream) {
      this.leftOut(
        at,
        `the route of ${path} to ${upstream}. ${path} goes to ${present.upstream} already, and routes go by path alone.`,
      )
    }
  }

  /** False, after reporting it, when no request could match the pattern. */
  isPattern(text: string, at: Origin): boolean {
    try {
      parsePattern(text)
      return true
    } catch (error) {
      if (!(error instanceof PatternError)) throw error
      this.leftOut(at, error.message)
      return false
    }
  }

  /** False, after reporting it, when the loader would refuse such a document. */
  isSound(kind: FileKind, document: object, at: Origin): boolean {
    const fault = faultIn(kind, document)
    if (fault !== undefined) this.leftOut(at, fault)
    return fault === undefined
  }

  /** False, after reporting it, when such a project is invalid. */
  project({ id, plan = ANY_PLAN, ...more }: ProjectParts, at: Origin): boolean {
    const project = { id, plan, environment: ENVIRONMENT, ...more }
    if (this.#projects.has(id)) return true
    if (!this.isSound('projects', { version: 1, projects: [project] }, at)) return false
    this.#plans.add(plan)
    this.#projects.set(id, new From(this.#place(at), project))
    return true
  }

  identifyBy(plugin: string | object): void {
    this.#identify = [plugin, ...this.#identify.filter(one => JSON.stringify(one) !== JSON.stringify(plugin))]
  }

  meter(parts: RuleParts & { readonly quota: WindowQuota }, at: Origin): void {
    this.#rule('volumetric', parts, { quota: parts.quota }, at)
  }

  slots(parts: RuleParts & { readonly max: number }, at: Origin): void {
    this.#rule('in-flight', parts, { max: parts.max, count: 'lifetime' }, at)
  }

  exempt(name: string, networks: readonly string[], at: Origin): void {
    this.#write('access', { id: this.nameFor('rule', name), networks, action: 'exempt', mode: 'enforce' }, at)
  }

  #write(kind: 'volumetric' | 'in-flight' | 'access', rule: object, at: Origin): void {
    if (!this.isSound(kind, { version: 1, kind, rules: [rule] }, at)) return
    this.#rules[kind].push(new From(this.#place(at), rule))
  }

  /** Sets the policy file of project limits, without its version and kind. */
  limitProjects(document: object): void {
    this.#projectLimits = document
  }

  #rule(kind: 'volumetric' | 'in-flight', parts: RuleParts, own: object, at: Origin): void {
    const match = [...new Set(parts.match)].filter(pattern => this.isPattern(pattern, at))
    if (match.length === 0) return
    const { key, hosts = [], plans = [], networks, reportOnly, onStoreError } = parts
    if (!hosts.every(host => this.project({ id: host, hosts: [host] }, at))) return
    this.#places.addRule({ match, hosts, at })
    const when = {
      ...(hosts.length > 0 && { projects: hosts }),
      ...(plans.length > 0 && { plans }),
      ...(networks !== undefined && { networks }),
    }
    const rule = {
      id: this.nameFor('rule', parts.name),
      match,
      ...(Object.keys(when).length > 0 && { when }),
      reads: true,
      key,
      ...(key.some(part => part.startsWith('header:')) && { missing: 'skip' }),
      ...own,
      mode: reportOnly ? 'report-only' : 'enforce',
      ...(onStoreError !== undefined && { onStoreError }),
    }
    this.#write(kind, rule, at)
  }

  #place({ line, file = this.#file }: Origin): string {
    return printable(`${basename(file)}:${line}`)
  }

  /** The texts by file name, without files that would be empty. */
  files(): ReadonlyMap<string, string> {
    for (const { at, patterns } of this.#places.overlaps()) {
      const which = patterns.slice(0, 3).join(', ') + (patterns.length > 3 ? ', …' : '')
      this.changed(
        at,
        `this rule counts requests of ${which}, too: every rule that matches a request applies.`,
      )
    }
    if (this.#upstreams.size === 0) {
      this.changed({ line: 1, col: 1 }, 'the file names no upstream; http://127.0.0.1:3000 stands in for it.')
      this.upstream('app', ['http://127.0.0.1:3000'], { line: 1, col: 1 })
    }
    const [only = ''] = this.#upstreams.keys()
    if (this.#routes.size === 0) this.route('/**', only, { line: 1, col: 1 })
    const files = new Map<string, string>()
    const add = (name: string, document: object): void => {
      files.set(name, yamlText({ version: 1, ...document }))
    }
    add('gateway.yaml', {
      upstreams: Object.fromEntries(this.#upstreams),
      routes: [...this.#routes.values()].map(({ entry }) => entry),
      identify: this.#identify,
      unknownProject: { plan: ANY_PLAN, environment: ENVIRONMENT },
    })
    add('projects.yaml', {
      plans: [...this.#plans],
      environments: [ENVIRONMENT],
      projects: [...this.#projects.values()],
    })
    for (const [kind, rules] of Object.entries(this.#rules)) {
      if (rules.length > 0) add(`policies/${kind}.yaml`, { kind, rules })
    }
    const limits = this.#projectLimits
    if (limits !== undefined) add('policies/project-limits.yaml', { kind: 'project-limits', ...limits })
    return files
  }
}
