/** Buckets from OpenAPI 3 documents: operations name their bucket, or are grouped. */

import { formatPath, type Path, type Problem } from '../../config/problem.js'
import { projectLimitsSchema } from '../../config/schema/policy.js'
import { createValidator } from '../../config/validate.js'
import { parseYaml, type YamlFile } from '../../config/yaml.js'
import { type Pattern, PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import { Grouper, type Grouping, type Node, type Operation } from './group.js'
import { basesOf, nodeOf, type Report } from './servers.js'

/** Keys of a path item that hold an operation (OpenAPI 3.1, 'Path Item Object'). */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

export interface Imported {
  /** Patterns by bucket, in the order of the documents. */
  readonly buckets: ReadonlyMap<string, readonly string[]>
  /** Operations that belong to no bucket. */
  readonly unnamed: number
  readonly problems: readonly Problem[]
}

interface Owner {
  readonly bucket: string
  readonly where: string
}

/** A document that is being read. */
interface Reading {
  readonly file: string
  readonly parsed: YamlFile
  readonly document: Node
  readonly report: Report
}

export class OpenApiImport {
  readonly #buckets = new Map<string, string[]>()
  readonly #owners = new PathTrie<Owner>()
  readonly #problems: Problem[] = []
  readonly #grouper: Grouper
  #unnamed = 0

  /** `by` says how operations that name no bucket are grouped; without it they belong to none. */
  constructor(by?: Grouping) {
    this.#grouper = new Grouper(by)
  }

  /** Reads one document, JSON or YAML. */
  read(file: string, text: string): void {
    // References to environment variables have no meaning here.
    const parsed = parseYaml(text, scalar => ({ value: scalar }))
    const report = (path: Path, message: string, atKey = false) => {
      this.#problems.push({ file, ...parsed.locate(path, atKey), path: formatPath(path), message })
    }
    const isRead = parsed.data !== undefined
    for (const { path, message, line, col } of parsed.faults) {
      // Faults inside an operation, such as a status code as a key, do not matter here.
      if (isRead && !(path[0] === 'paths' && path.length <= 3)) continue
      this.#problems.push({ file, line, col, path: formatPath(path), message })
    }
    if (!isRead) return
    const document = nodeOf(parsed.data)
    if (typeof document.openapi !== 'string' || !document.openapi.startsWith('3.')) {
      report([], 'This is not an OpenAPI 3 document: its "openapi" does not begin with "3.".')
      return
    }
    const reading = { file, parsed, document, report }
    for (const [path, written] of Object.entries(nodeOf(document.paths))) {
      const { item, at } = followed(nodeOf(written), ['paths', path], reading)
      for (const method of METHODS) {
        if (!(method in item)) continue
        const operation = nodeOf(item[method])
        this.#operation({ method, path, item, operation, itemAt: at, at: [...at, method] }, reading)
      }
    }
  }

  result(): Imported {
    return { buckets: this.#buckets, unnamed: this.#unnamed, problems: this.#problems }
  }

  #operation(one: Operation, { file, parsed, document, report }: Reading): void {
    const named = this.#grouper.bucketOf(one)
    if (named === undefined) {
      this.#unnamed += 1
      return
    }
    const { method, path, item, operation, itemAt, at } = one
    const fault = nameFault(named.name)
    if (fault !== undefined) {
      report(named.at ?? at, fault)
      return
    }
    const owner = { bucket: named.name as string, where: `${file}:${parsed.locate(at, true).line}` }
    const warn = (message: string) => report(at, message, true)
    const bases = basesOf(
      [
        [operation, at],
        [item, itemAt],
        [document, []],
      ],
      report,
    )
    for (const base of bases) {
      const whole = `${base}${plainParameters(path).replace(/\/$/, '')}`
      const pattern = readPattern(`${method.toUpperCase()} ${whole || '/'}`, warn)
      if (pattern !== undefined) this.#add(pattern, owner, warn)
    }
  }

  #add(pattern: Pattern, owner: Owner, report: (message: string) => void): void {
    const present = this.#owners.add(pattern, owner)
    if (present === undefined) {
      const patterns = this.#buckets.get(owner.bucket) ?? []
      patterns.push(pattern.text)
      this.#buckets.set(owner.bucket, patterns)
      return
    }
    const { bucket, where } = present.value
    if (bucket === owner.bucket) return
    report(
      `"${pattern.text}" is in bucket "${owner.bucket}" here, but "${present.route}" is in "${bucket}" at ${where}: both mean the same requests. "${bucket}" was kept.`,
    )
  }
}

/** A path item, or the one it refers to in its own document (OpenAPI 3.1, 'Reference Object'). */
function followed(item: Node, at: Path, { document, report }: Reading): { item: Node; at: Path } {
  const { $ref: reference } = item
  if (reference === undefined) return { item, at }
  const target = /^#\/components\/pathItems\/([^/]+)$/.exec(String(reference))?.[1]
  const name = target?.replaceAll('~1', '/').replaceAll('~0', '~')
  const items = nodeOf(nodeOf(document.components).pathItems)
  if (name !== undefined && Object.hasOwn(items, name)) {
    return { item: nodeOf(items[name]), at: ['components', 'pathItems', name] }
  }
  report(
    at,
    'A path behind $ref is not followed, unless it is one of this document under components.pathItems. Give its file, too.',
  )
  return { item, at }
}

/** Only the position of a parameter matters; its name may contain characters that a pattern's may not. */
function plainParameters(path: string): string {
  return path.replace(/(?<=\/)\{([^{}/]+)\}(?=\/|$)/g, (whole, name: string) =>
    /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? whole : `{_${name.replace(/[^A-Za-z0-9_-]/g, '_')}}`,
  )
}

function readPattern(text: string, report: (message: string) => void): Pattern | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    report(`Left out: ${error.message}`)
    return undefined
  }
}

const validate = createValidator(projectLimitsSchema)

/** The fault that the policy file's schema reports for the name. */
function nameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return `The bucket's name must be text.`
  const document = {
    version: 1,
    kind: 'project-limits',
    buckets: { [name]: ['/'] },
    limits: [{ for: [{}], quotas: {} }],
  }
  return validate(document, () => [])[0]?.message
}
