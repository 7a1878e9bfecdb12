/** Buckets from OpenAPI 3 documents whose operations name theirs in `x-ory-ratelimit-bucket`. */
import { projectLimitsSchema } from '../../config/policy-schema.js'
import { formatPath, type Path, type Problem } from '../../config/problem.js'
import { createValidator } from '../../config/validate.js'
import { parseYaml, type YamlFile } from '../../config/yaml.js'
import { type Pattern, PatternError, parsePattern } from '../../gateway/policy/pattern.js'
import { PathTrie } from '../../gateway/policy/trie.js'

const ANNOTATION = 'x-ory-ratelimit-bucket'
/** Keys of a path item that hold an operation (OpenAPI 3.1, 'Path Item Object'). */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

export interface Imported {
  /** Patterns by bucket, in the order of the documents. */
  readonly buckets: ReadonlyMap<string, readonly string[]>
  /** Operations that name no bucket. */
  readonly unnamed: number
  readonly problems: readonly Problem[]
}

interface Owner {
  readonly bucket: string
  readonly where: string
}

type Node = Readonly<Record<string, unknown>>

export class OpenApiImport {
  readonly #buckets = new Map<string, string[]>()
  readonly #owners = new PathTrie<Owner>()
  readonly #problems: Problem[] = []
  #unnamed = 0

  /** Takes in one document, JSON or YAML. */
  read(file: string, text: string): void {
    // References to the environment mean nothing here.
    const parsed = parseYaml(text, scalar => ({ value: scalar }))
    const report = (path: Path, message: string, atKey = false) => {
      this.#problems.push({ file, ...parsed.locate(path, atKey), path: formatPath(path), message })
    }
    const isRead = parsed.data !== undefined
    for (const { path, message, line, col } of parsed.faults) {
      // What is odd inside an operation, such as a status code for a key, is not our concern.
      if (isRead && !(path[0] === 'paths' && path.length <= 3)) continue
      this.#problems.push({ file, line, col, path: formatPath(path), message })
    }
    if (!isRead) return
    const document = nodeOf(parsed.data)
    if (typeof document.openapi !== 'string' || !document.openapi.startsWith('3.')) {
      report([], 'This is no OpenAPI 3 document: its "openapi" does not begin with "3.".')
      return
    }
    const bases = basesOf(document, report)
    for (const [path, item] of Object.entries(nodeOf(document.paths))) {
      this.#item(file, parsed, path, nodeOf(item), bases, report)
    }
  }

  result(): Imported {
    return { buckets: this.#buckets, unnamed: this.#unnamed, problems: this.#problems }
  }

  #item(
    file: string,
    parsed: YamlFile,
    path: string,
    item: Node,
    bases: readonly string[],
    report: Report,
  ): void {
    if ('$ref' in item) report(['paths', path], 'A path behind $ref is not followed. Give its file, too.')
    for (const method of METHODS) {
      if (!(method in item)) continue
      const at = ['paths', path, method]
      const own = nodeOf(item[method])[ANNOTATION]
      const bucket = own ?? item[ANNOTATION]
      const place = own === undefined ? ['paths', path, ANNOTATION] : [...at, ANNOTATION]
      if (bucket === undefined) {
        this.#unnamed += 1
        continue
      }
      const fault = nameFault(bucket)
      if (fault !== undefined) {
        report(place, fault)
        continue
      }
      const where = `${file}:${parsed.locate(at, true).line}`
      for (const base of bases) {
        const text = `${method.toUpperCase()} ${base}${path.replace(/\/$/, '') || (base === '' ? '/' : '')}`
        const pattern = readPattern(text, message => report(at, message, true))
        if (pattern !== undefined)
          this.#add(pattern, { bucket: bucket as string, where }, message => report(at, message, true))
      }
    }
  }

  #add(pattern: Pattern, owner: Owner, report: (message: string) => void): void {
    const present = this.#owners.add(pattern, owner)
    if (present === undefined) {
      this.#buckets.set(owner.bucket, [...(this.#buckets.get(owner.bucket) ?? []), pattern.text])
      return
    }
    const { bucket, where } = present.value
    if (bucket === owner.bucket) return
    report(
      `"${pattern.text}" is in bucket "${owner.bucket}" here, but "${present.route}" is in "${bucket}" at ${where}: both mean the same requests. "${bucket}" was kept.`,
    )
  }
}

type Report = (path: Path, message: string, atKey?: boolean) => void

function nodeOf(value: unknown): Node {
  return typeof value === 'object' && value !== null ? (value as Node) : {}
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

/** What the policy file's own check says of the name. */
function nameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return `The bucket's name must be text.`
  const document = {
    version: 1,
    kind: 'project-limits',
    buckets: { [name]: ['/'] },
    limits: [{ for: [{}], quotas: {} }],
  }
  return validate(document, () => false)[0]?.message
}

/** The paths that `servers` put before all others; variables stand for their defaults. */
function basesOf({ servers }: Node, report: Report): string[] {
  if (!Array.isArray(servers) || servers.length === 0) return ['']
  const bases = servers.map((server, i) => {
    const { url, variables } = nodeOf(server)
    const filled = String(url).replace(/\{([^{}]+)\}/g, (whole, name: string) => {
      const { default: fallback } = nodeOf(nodeOf(variables)[name])
      return fallback === undefined ? whole : String(fallback)
    })
    if (URL.canParse(filled, 'http://any')) return new URL(filled, 'http://any').pathname.replace(/\/$/, '')
    report(['servers', i], 'Not an address: its path was taken to be "/".')
    return ''
  })
  return [...new Set(bases)]
}
