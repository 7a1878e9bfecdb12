/** Buckets from OpenAPI 3 documents: operations name their bucket, or are grouped. */
import { formatPath, type Path, type Problem } from '../../config/problem.js'
import type { YamlFile } from '../../config/yaml.js'
import { type Pattern, PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import { faultIn } from './findings.js'
import { plainName } from './migration.js'
import { type Members, membersOf } from './programs.js'
import { parseForeign } from './yaml.js'

/** How operations that name no bucket are grouped. */
export const GROUPINGS = ['tag', 'path', 'operation'] as const
export type Grouping = (typeof GROUPINGS)[number]

/** Keys of a path item that hold an operation (OpenAPI 3.1, 'Path Item Object'). */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']
/** Keys that name a bucket, on an operation or on its path; the first that is present counts. */
const ANNOTATIONS = ['x-sluice-bucket', 'x-ory-ratelimit-bucket'] as const
const LONGEST_NAME = 64

interface ImportedOperations {
  /** Patterns by bucket, in the order of the documents. */
  readonly buckets: ReadonlyMap<string, readonly string[]>
  /** Operations that belong to no bucket. */
  readonly unnamed: number
  readonly problems: readonly Problem[]
}

interface Operation {
  readonly method: string
  /** As written in the document. */
  readonly path: string
  readonly operation: Members
  readonly item: Members
  /** The places of the operation and of the path item. */
  readonly at: Path
  readonly itemAt: Path
}

interface BucketOwner {
  readonly bucket: string
  readonly where: string
}

type Report = (path: Path, message: string, atKey?: boolean) => void

/** A document that is being read. */
interface Reading {
  readonly file: string
  readonly yaml: YamlFile
  readonly document: Members
  readonly report: Report
}

export class OpenApiImport {
  readonly #by: Grouping | undefined
  readonly #buckets = new Map<string, string[]>()
  readonly #owners = new PathTrie<BucketOwner>()
  readonly #problems: Problem[] = []
  /** The group of each name that a group was given. */
  readonly #groups = new Map<string, string>()
  #unnamed = 0

  /** @param by how operations that name no bucket are grouped; without it they belong to none */
  constructor(by?: Grouping) {
    this.#by = by
  }

  /** Reads one document, JSON or YAML. */
  read(file: string, text: string): void {
    const yaml = parseForeign(text)
    const report: Report = (path, message, atKey = false) => {
      this.#problems.push({ file, ...yaml.locate(path, atKey), path: formatPath(path), message })
    }
    const isRead = yaml.data !== undefined
    for (const { path, message, line, col } of yaml.faults) {
      // Faults inside an operation, such as a status code as a key, do not matter here.
      if (isRead && !(path[0] === 'paths' && path.length <= 3)) continue
      this.#problems.push({ file, line, col, path: formatPath(path), message })
    }
    if (!isRead) return
    const document = membersOf(yaml.data)
    if (typeof document.openapi !== 'string' || !document.openapi.startsWith('3.')) {
      report([], 'This is not an OpenAPI 3 document: its "openapi" does not begin with "3.".')
      return
    }
    const reading = { file, yaml, document, report }
    for (const [path, written] of Object.entries(membersOf(document.paths))) {
      const { item, at } = followed(membersOf(written), ['paths', path], reading)
      for (const method of METHODS) {
        if (!(method in item)) continue
        const operation = membersOf(item[method])
        this.#operation({ method, path, item, operation, itemAt: at, at: [...at, method] }, reading)
      }
    }
  }

  result(): ImportedOperations {
    return { buckets: this.#buckets, unnamed: this.#unnamed, problems: this.#problems }
  }

  #operation(one: Operation, { file, yaml, document, report }: Reading): void {
    const { method, path, operation, item, at, itemAt } = one
    const named = this.#bucketOf(one)
    if (named === undefined) {
      this.#unnamed += 1
      return
    }
    const { name: bucket, nameAt } = named
    const fault = nameFault(bucket)
    if (fault !== undefined) {
      report(nameAt, fault)
      return
    }
    const where = `${file}:${yaml.locate(at, true).line}`
    const holders = [[operation, at] as const, [item, itemAt] as const, [document, []] as const]
    for (const base of basesOf(holders, report)) {
      const whole = `${base}${plainParameters(path).replace(/\/$/, '')}`
      const warn = (message: string): void => report(at, message, true)
      const pattern = readPattern(`${method.toUpperCase()} ${whole || '/'}`, warn)
      if (pattern !== undefined) this.#add(pattern, { bucket: bucket as string, where }, warn)
    }
  }

  /** The bucket's name, and its place if the document names it; undefined if the operation belongs to none. */
  #bucketOf(one: Operation): { readonly name: unknown; readonly nameAt: Path } | undefined {
    const { item, operation, itemAt, at } = one
    for (const [node, where] of [[operation, at] as const, [item, itemAt] as const]) {
      const key = ANNOTATIONS.find(name => node[name] !== undefined)
      if (key !== undefined) return { name: node[key], nameAt: [...where, key] }
    }
    const group = this.#groupOf(one)
    return group === undefined ? undefined : { name: this.#nameOf(group), nameAt: at }
  }

  #groupOf({ method, path, operation: { tags, operationId } }: Operation): string | undefined {
    if (this.#by === 'tag') return Array.isArray(tags) && tags.length > 0 ? String(tags[0]) : undefined
    if (this.#by === 'path') return path
    if (this.#by === undefined) return undefined
    return typeof operationId === 'string' ? operationId : `${method} ${path}`
  }

  /** Tags with the same plain name share a bucket; two paths or operations never do. */
  #nameOf(group: string): string {
    const plain = plainName(group)
    for (let i = 1; ; i++) {
      const name = i === 1 ? plain : `${plain.slice(0, LONGEST_NAME - 5)}-${i}`
      const owner = this.#groups.get(name) ?? group
      if (owner === group || this.#by === 'tag') {
        this.#groups.set(name, owner)
        return name
      }
    }
  }

  #add(pattern: Pattern, owner: BucketOwner, warn: (message: string) => void): void {
    const present = this.#owners.add(pattern, owner)
    if (present === undefined) {
      const patterns = this.#buckets.get(owner.bucket) ?? []
      patterns.push(pattern.text)
      this.#buckets.set(owner.bucket, patterns)
      return
    }
    const { bucket, where } = present.value
    if (bucket === owner.bucket) return
    const here = `"${pattern.text}" is in bucket "${owner.bucket}" here`
    const there = `"${present.route}" is in "${bucket}" at ${where}`
    warn(`${here}, but ${there}: both mean the same requests. "${bucket}" was kept.`)
  }
}

/** A path item, or the one it refers to in its own document (OpenAPI 3.1, 'Reference Object'). */
function followed(item: Members, at: Path, { document, report }: Reading): { item: Members; at: Path } {
  const { $ref: reference } = item
  if (reference === undefined) return { item, at }
  const target = /^#\/components\/pathItems\/([^/]+)$/.exec(String(reference))?.[1]
  const name = target?.replaceAll('~1', '/').replaceAll('~0', '~')
  const items = membersOf(membersOf(document.components).pathItems)
  if (name !== undefined && Object.hasOwn(items, name))
    return { item: membersOf(items[name]), at: ['components', 'pathItems', name] }
  report(
    at,
    'A path behind $ref is not followed, unless it is one of this document under components.pathItems. Give its file, too.',
  )
  return { item, at }
}

/** Cached so that the faults of a list of servers that applies to many operations are reported once. */
const basesOfList = new WeakMap<Members, readonly string[]>()

/**
 * The base paths that `servers` define (OpenAPI 3.1, 'Server Object'). The nearest list applies: that of the operation,
 * its path or the document. Variables take their defaults.
 */
function basesOf(holders: readonly (readonly [Members, Path])[], report: Report): readonly string[] {
  const [holder, at = []] =
    holders.find(([{ servers }]) => Array.isArray(servers) && servers.length > 0) ?? []
  if (holder === undefined) return ['']
  const known = basesOfList.get(holder)
  if (known !== undefined) return known
  const bases = (holder.servers as unknown[]).map((server, i) => {
    const { url, variables } = membersOf(server)
    const filled = String(url).replace(/\{([^{}]+)\}/g, (whole, name: string) => {
      const { default: fallback } = membersOf(membersOf(variables)[name])
      return fallback === undefined ? whole : String(fallback)
    })
    const unfilled = /\{[^{}]+\}/.exec(filled)?.[0]
    if (unfilled === undefined && URL.canParse(filled, 'http://any'))
      return new URL(filled, 'http://any').pathname.replace(/\/$/, '')
    const fault = unfilled === undefined ? 'Not an address' : `The variable ${unfilled} has no default`
    report([...at, 'servers', i], `${fault}: its path was taken to be "/".`)
    return ''
  })
  const distinct = [...new Set(bases)]
  basesOfList.set(holder, distinct)
  return distinct
}

/** Only the position of a parameter matters; its name may contain characters that a pattern's may not. */
function plainParameters(path: string): string {
  return path.replace(/(?<=\/)\{([^{}/]+)\}(?=\/|$)/g, (whole, name: string) =>
    /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? whole : `{_${name.replace(/[^A-Za-z0-9_-]/g, '_')}}`,
  )
}

function readPattern(text: string, warn: (message: string) => void): Pattern | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    warn(`Left out: ${error.message}`)
    return undefined
  }
}

/** The fault that the policy file's schema reports for the name. */
function nameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return `The bucket's name must be text.`
  const limits = [{ for: [{}], quotas: {} }]
  return faultIn('project-limits', { version: 1, kind: 'project-limits', buckets: { [name]: ['/'] }, limits })
}
