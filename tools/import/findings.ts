/** What an import could not translate: grouped, the worst first. */
import { formatPath, formatProblem, type Path, type Problem } from '../../config/problem.js'
import { accessSchema } from '../../config/schema/access.js'
import { Health } from '../../config/schema/health.js'
import { projectLimitsSchema, ruleFileSchema } from '../../config/schema/policy.js'
import { projectsSchema } from '../../config/schema/projects.js'
import { Route } from '../../config/schema/routes.js'
import { createValidator, type Validator } from '../../config/validate.js'
import type { Position } from '../../config/yaml.js'
import { inFlight } from '../../gateway/decide/in-flight.js'
import { volumetric } from '../../gateway/decide/volumetric.js'
import { apiKey } from '../../gateway/identify/api-keys/api-key.js'
import { PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { printable } from '../text.js'

export interface Origin extends Position {
  readonly path?: Path
  /** Set when it is not the file given to the command. */
  readonly file?: string | undefined
}

/** The groups in their order, each with its heading and how its sentences begin. */
const GROUPS = {
  access: ['Access control that is lost', 'Lost: '],
  counts: ['Counts or answers differently', 'Not the same: '],
  elsewhere: ['Not imported, but exists here', 'Left out: '],
  missing: ['Not imported', 'Left out: '],
} as const

type FindingGroup = keyof typeof GROUPS
interface ImportFinding extends Problem {
  readonly group: FindingGroup
}

const MOST_NAMED = 12
const LONGEST_PATTERN = 1024

export class Findings {
  /** True when the file cannot be imported at all; the findings say why. */
  isUnreadable = false
  readonly #file: string
  readonly #found: ImportFinding[] = []
  readonly #reported = new Set<string>()
  readonly #notNeeded = new Set<string>()

  /** Reports something that the files cannot express. Like all of these, with `once` only the first time for that text. */
  readonly leftOut = this.#reporter('missing')
  /** Reports something that can be written here, and where. */
  readonly elsewhere = this.#reporter('elsewhere')
  /** Reports access control that the files cannot express. */
  readonly lost = this.#reporter('access')
  /** Reports something that the files express differently. */
  readonly changed = this.#reporter('counts')

  /** @param file the file that a place without one is in */
  constructor(file: string) {
    this.#file = file
  }

  #reporter(group: FindingGroup) {
    return (at: Origin, sentence: string, once?: string): void => {
      if (once !== undefined && !this.isNew(once)) return
      const { line, col, path = [], file = this.#file } = at
      this.#found.push({
        group,
        file,
        line,
        col,
        path: formatPath(path),
        message: GROUPS[group][1] + sentence,
      })
    }
  }

  /** Like `changed`, but only the first time for each sentence. */
  changedOnce(at: Origin, sentence: string): void {
    this.changed(at, sentence, sentence)
  }

  /** Reports a field that a client may set where nobody does. @param program which set or removed it */
  lostField(at: Origin, name: string, program: string): void {
    const why = 'The upstream gets what the client sends in it, and must not believe it.'
    this.lost(
      at,
      `the field ${name}, which ${program} sets or removes. ${why}`,
      `field ${name.toLowerCase()}`,
    )
  }

  /** Reports that clients' addresses are not known any more. @param header where proxies put them; absent: servers differ */
  lostClients(at: Origin, proxies: string, header?: string): void {
    const why =
      header === undefined
        ? 'The servers of this file trust different ones'
        : `They tell it in ${header}, and only X-Forwarded-For is read`
    const advice = 'let them send it, and name them under trustedProxies.'
    this.lost(at, `the clients’ addresses behind ${proxies}. ${why}: ${advice}`)
  }

  lostProxyProtocol(at: Origin): void {
    const why = 'which is not read. All clients have the address of the proxy in front.'
    this.lost(at, `the clients’ addresses of the PROXY protocol, ${why}`)
  }

  unreadable(at: Origin, sentence: string): void {
    this.isUnreadable = true
    this.changed(at, sentence)
  }

  notNeeded(name: string): void {
    this.#notNeeded.add(name)
  }

  /** True the first time it is called with a text. */
  isNew(text: string): boolean {
    if (this.#reported.has(text)) return false
    this.#reported.add(text)
    return true
  }

  /** False, after reporting it, when no request could match the pattern. */
  isPattern(text: string, at: Origin): boolean {
    try {
      if (text.length > LONGEST_PATTERN) throw new PatternError('A pattern has at most 1024 characters.')
      parsePattern(text)
      return true
    } catch (error) {
      if (!(error instanceof PatternError)) throw error
      this.leftOut(at, error.message)
      return false
    }
  }

  /** Each pattern once, without those that no request could match; they are reported. */
  patternsOf(match: readonly string[], at: Origin): string[] {
    return [...new Set(match)].filter(pattern => this.isPattern(pattern, at))
  }

  /** False, after reporting it, when the loader would refuse such a document. */
  isSound(kind: DocumentKind, document: object, at: Origin): boolean {
    const fault = faultIn(kind, document)
    if (fault !== undefined) this.leftOut(at, fault)
    return fault === undefined
  }

  /** All findings in the order in which they are reported. */
  get list(): readonly ImportFinding[] {
    const order = Object.keys(GROUPS)
    return this.#found.sort(
      (a, b) =>
        order.indexOf(a.group) - order.indexOf(b.group) ||
        a.file.localeCompare(b.file) ||
        a.line - b.line ||
        a.col - b.col,
    )
  }

  get unneeded(): readonly string[] {
    return [...this.#notNeeded].sort()
  }

  text(): string {
    const lines: string[] = []
    for (const [group, [heading]] of Object.entries(GROUPS)) {
      const here = this.list.filter(one => one.group === group)
      if (here.length > 0) lines.push(`${heading}:`, ...here.map(one => `  ${printable(formatProblem(one))}`))
    }
    const names = this.unneeded
    if (names.length > 0) {
      const shown = names.slice(0, MOST_NAMED).map(printable).join(', ')
      lines.push(`Not needed: ${shown}${names.length > MOST_NAMED ? ', …' : ''} (${names.length})`)
    }
    return lines.map(line => `${line}\n`).join('')
  }
}

/** The first of some words, for a sentence. */
export const shortened = (words: readonly string[]): string =>
  words.length > 5 ? `${words.slice(0, 5).join(', ')}, …` : words.join(', ')

const SCHEMAS = {
  volumetric: () => ruleFileSchema('volumetric', volumetric.schema),
  'in-flight': () => ruleFileSchema('in-flight', inFlight.schema),
  access: () => accessSchema,
  'project-limits': () => projectLimitsSchema,
  projects: () => projectsSchema,
  route: () => Route,
  health: () => Health,
  'api-key': () => apiKey.schema,
}

type DocumentKind = keyof typeof SCHEMAS

const validators = new Map<DocumentKind, Validator>()

/** The first fault that the loader would find in a document of that kind, as a sentence; undefined when there is none. */
export function faultIn(kind: DocumentKind, document: object): string | undefined {
  const validate = validators.get(kind) ?? createValidator(SCHEMAS[kind]())
  validators.set(kind, validate)
  // A copy, because validation fills in defaults.
  return validate(structuredClone(document), () => [])[0]?.message
}
