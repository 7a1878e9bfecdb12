/**
 * Collects the result of importing another gateway's configuration: files that `sluice check` accepts, and what they
 * cannot express.
 */
import { basename } from 'node:path'
import { PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { printable } from '../text.js'
import { type BucketParts, Buckets } from './buckets.js'
import { ANY_PLAN, Callers } from './callers.js'
import { asWritten } from './closed-spellings.js'
import { Doors, type Place } from './doors.js'
import { Findings } from './findings.js'
import { type FileKind, faultIn } from './fits.js'
import { plainName } from './group.js'
import type { Origin } from './parts.js'
import { Places, twinOf } from './paths.js'
import { type Routed, routesThrough } from './routes.js'
import { Rules } from './rules.js'
import { Upstreams } from './upstreams.js'
import { From, yamlText } from './yaml-text.js'

export class Migration {
  readonly findings: Findings
  readonly callers: Callers
  readonly rules: Rules
  readonly upstreams: Upstreams
  isUnreadable = false
  readonly #file: string
  readonly #names = new Map<string, Map<string, number>>()
  readonly #doors = new Doors<Routed>()
  readonly #buckets = new Buckets()
  readonly #places = new Places()
  readonly #trusted = new Set<string>()
  #redis: string | undefined

  constructor(file: string) {
    this.#file = file
    this.findings = new Findings(file)
    this.callers = new Callers(this)
    this.rules = new Rules(this, this.#places)
    this.upstreams = new Upstreams(this)
  }

  /** Reports something that the files cannot express, with the reason. */
  leftOut(at: Origin, sentence: string): void {
    this.findings.add('missing', at, sentence)
  }

  /** Reports something that is left out although it can be written here; the sentence says where. */
  elsewhere(at: Origin, sentence: string): void {
    this.findings.add('elsewhere', at, sentence)
  }

  /** Reports access control that the files cannot express. */
  lost(at: Origin, sentence: string): void {
    this.findings.add('access', at, sentence)
  }

  /** Reports why the file cannot be imported at all. */
  unreadable(at: Origin, sentence: string): void {
    this.isUnreadable = true
    this.findings.add('counts', at, sentence)
  }

  /** Reports something that the files express differently. */
  changed(at: Origin, sentence: string): void {
    this.findings.add('counts', at, sentence)
  }

  /** Like `changed`, but only the first time for each sentence. */
  changedOnce(at: Origin, sentence: string): void {
    if (this.isNew(sentence)) this.changed(at, sentence)
  }

  /** True the first time it is called with a text. */
  isNew(text: string): boolean {
    return this.findings.isNew(text)
  }

  /** A valid name for an upstream, or for a rule or bucket; a different one for each call. */
  nameFor(kind: 'upstream' | 'rule', text: string): string {
    const taken = this.#names.get(kind) ?? new Map<string, number>()
    this.#names.set(kind, taken)
    const plain = plainName(text)
    let name = plain
    let i = taken.get(plain) ?? 0
    for (; i > 0 && taken.has(name); i++) name = `${plain.slice(0, 58)}-${i + 1}`
    taken.set(plain, Math.max(1, i))
    if (name !== plain) taken.set(name, 1)
    return name
  }

  /** Sends requests of a place to an upstream. */
  open(place: Omit<Routed, 'at' | 'twin'>, at: Origin): void {
    const patterns = place.patterns.filter(pattern => this.isPattern(pattern, at))
    if (patterns.length === 0) return
    if (place.methods?.includes('GET') && !place.methods.includes('HEAD'))
      this.changedOnce(at, 'a route for GET takes HEAD, too, wherever that went or was refused before.')
    this.#doors.open({ ...place, patterns, at, ...twinOf(place) })
  }

  /** Keeps a place closed, and says so. @param what how it was guarded, such as `closed to all but 10.0.0.0/8` */
  close(place: Place, what: string, at: Origin): void {
    this.#doors.close(place, what, at)
  }

  /** Keeps a place closed whose requests went elsewhere, where another route would take them. */
  keepFrom(place: Place, what: string, at: Origin): void {
    this.#doors.close(place, what, at, false)
  }

  /** Records a place whatever limits it has. */
  place(match: readonly string[], projects: readonly string[]): void {
    this.#places.add(match, projects)
    for (const pattern of match) this.#buckets.place(pattern, projects)
  }

  trust(networks: readonly string[], at: Origin): void {
    for (const network of networks) {
      if (/\/0$/.test(network)) {
        this.lost(
          at,
          `"${network}" as a trusted proxy: every client could choose its address. Name your proxies under trustedProxies.`,
        )
      } else if (this.isSound('access', accessFile({ networks: [network], action: 'exempt' }), at)) {
        this.#trusted.add(network)
      }
    }
  }

  useRedis(url: string): void {
    this.#redis ??= url
  }

  /** Each pattern once, without those that no request could match; they are reported. */
  patternsOf(match: readonly string[], at: Origin): string[] {
    return [...new Set(match)].filter(pattern => this.isPattern(pattern, at))
  }

  /** False, after reporting it, when no request could match the pattern. */
  isPattern(text: string, at: Origin): boolean {
    try {
      if (text.length > 1024) throw new PatternError('A pattern has at most 1024 characters.')
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

  /** Adds a limit as a bucket; false when it fits none, because others have some of its patterns. */
  bucket(
    parts: Omit<BucketParts, 'name'> & { readonly name: string; readonly onStoreError?: 'closed' },
    at: Origin,
  ): boolean {
    const match = this.patternsOf(parts.match, at)
    if (match.length === 0 || match.length > 1000) return false
    const document = {
      version: 1,
      kind: 'project-limits',
      buckets: { a: match },
      limits: [{ for: [{}], quotas: { a: parts.quota } }],
    }
    if (faultIn('project-limits', document) !== undefined) return false
    const { onStoreError, ...rest } = parts
    const isAdded = this.#buckets.add({ ...rest, match, name: this.nameFor('rule', parts.name) })
    if (isAdded && onStoreError === 'closed') this.#buckets.isClosed = true
    return isAdded
  }

  /** The bucket that a pattern is in. */
  ownerOf(pattern: string): string | undefined {
    return this.#buckets.ownerOf(pattern)
  }

  placeOf({ line, file = this.#file }: Origin): string {
    return printable(`${basename(file)}:${line}`)
  }

  /** The texts by file name, without files that would be empty. */
  files(): ReadonlyMap<string, string> {
    const rules = this.rules.byKind()
    for (const { at, patterns } of this.#places.overlaps()) {
      const which = patterns.slice(0, 3).join(', ') + (patterns.length > 3 ? ', …' : '')
      this.changed(
        at,
        `this rule counts requests of ${which}, too: every rule that matches a request applies.`,
      )
    }
    const files = new Map<string, string>()
    const add = (name: string, document: object): void => {
      files.set(name, yamlText({ version: 1, ...document }))
    }
    const gateway = this.#gateway()
    this.#buckets.exemptRest(this.nameFor('rule', 'not-limited'))
    add('gateway.yaml', gateway)
    const plans = this.callers.givePlans(this.#buckets.owners)
    add('projects.yaml', this.callers.document())
    for (const [kind, some] of rules) add(`policies/${kind}.yaml`, { kind, rules: some })
    const ownPlans = this.callers.planQuotas
    if (!this.#buckets.isEmpty || ownPlans.size > 0) {
      const others = this.callers.plansBesides([...plans.values(), ...ownPlans.keys()])
      const limits = this.#buckets.document(project => plans.get(project) ?? ANY_PLAN, others)
      add('policies/project-limits.yaml', {
        kind: 'project-limits',
        ...this.callers.withOwnPlans(limits, this.ownerOf('/**')),
      })
    }
    return files
  }

  #gateway(): object {
    const { open, routes, ...resolved } = routesThrough(this.#doors, this)
    const start = { line: 1, col: 1 }
    const isShut = routes.size === 0
    const closed = isShut ? [{ prefix: '/' }] : resolved.closed
    if (isShut) this.lost(start, 'no route is left, so everything is under "closed" and answers 404.')
    if (this.upstreams.isEmpty) {
      this.changed(start, 'the file names no upstream; http://127.0.0.1:3000 stands in for it.')
      this.upstreams.add('app', ['http://127.0.0.1:3000'], start)
    }
    if (isShut) routes.set('', new From(this.placeOf(start), { path: '/**', upstream: this.upstreams.first }))
    const isNamed = open.length > 0 && open.every(({ hosts }) => hosts.length > 0)
    return {
      ...(this.#redis !== undefined && { redis: this.#redis }),
      upstreams: this.upstreams.document(),
      routes: [...routes.values()],
      ...(closed.length > 0 && { closed: closed.flatMap(asWritten) }),
      ...this.callers.settings(isNamed),
      ...(this.#trusted.size > 0 && { trustedProxies: [...this.#trusted] }),
    }
  }
}

const accessFile = (rule: object): object => ({
  version: 1,
  kind: 'access',
  rules: [{ id: 'one', mode: 'enforce', ...rule }],
})
