/** `sluice import`: policies from OpenAPI documents, and whole configurations from those of other gateways. */
import { readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { formatProblem, listed, type Problem } from '../../config/problem.js'
import { didYouMean } from '../arguments.js'
import { defineCommand, type ExitCode, Unusable } from '../command.js'
import { makeNew, unreadable, writeNew } from '../files.js'
import type { Io } from '../io.js'
import { count, printable } from '../text.js'
import { importKong } from './kong.js'
import { Migration } from './migration.js'
import { importNginx } from './nginx.js'
import { GROUPINGS, type Grouping, OpenApiImport } from './openapi.js'
import { OTHER_PROGRAMS } from './programs.js'
import { importRatelimit } from './ratelimit.js'
import { importTraefik } from './traefik.js'
import type { SourceFile } from './yaml.js'

const MAX_FILE_BYTES = 16 * 1024 * 1024

/** How many files an importer takes, and how it reads them. */
interface Importer {
  readonly most: number
  /** @param others the files beside the first. @param path the name of the first */
  read(first: SourceFile, into: Migration, others: readonly SourceFile[], path: string): void
}

const IMPORTERS: Readonly<Record<string, Importer>> = {
  kong: { most: 2, read: (file, into, [conf]) => importKong(file, into, conf) },
  nginx: { most: 1, read: (file, into, _others, path) => importNginx(file, into, { path, read: textOf }) },
  traefik: { most: 20, read: (file, into, others) => importTraefik([file, ...others], into) },
  ratelimit: { most: 1, read: importRatelimit },
}
const FORMATS = ['openapi', ...Object.keys(IMPORTERS)]

interface OutputOptions {
  readonly output: string | undefined
  readonly json: boolean
}

export const importCommand = defineCommand({
  name: 'import',
  summary:
    'Make buckets from OpenAPI documents, or a configuration from that of Kong, nginx, Traefik or Envoy',
  operands: { usage: `${FORMATS.join('|')} FILE...`, least: 2, most: Number.POSITIVE_INFINITY },
  options: {
    by: {
      type: 'string',
      value: 'GROUP',
      help: 'openapi: tag, path or operation: the bucket of operations that name none',
    },
    output: {
      type: 'string',
      value: 'NAME',
      help: 'write there instead of standard output: a new file, or for a configuration a new folder',
    },
    json: { type: 'boolean', help: 'one JSON object instead of YAML' },
  },
  details: `openapi reads OpenAPI 3 documents, JSON or YAML. An operation, or its path, names its bucket in x-sluice-bucket or x-ory-ratelimit-bucket; with --by those that name none are grouped by their first tag, by their path, or one by one. Prints a policy file of kind project-limits with suggested limits as comments, for you to choose. An operation without a bucket falls into a less specific one, such as "*".

kong reads Kong's declarative configuration, and beside it kong.conf; nginx its configuration with what it includes; traefik dynamic configurations in YAML, and beside them the static one; ratelimit the descriptors of Envoy's rate limit service. They print gateway.yaml, projects.yaml and policies that pass "sluice check". What guarded a route (addresses, credentials, headers) is reported first, and such a route is left out or closed: nothing is let through that was refused before, but for what docs/migration.md names. What else cannot be expressed, or only differently, follows with its place.

Exit code 1 when two operations that mean the same requests name different buckets, or something had to be left out. It is reported with its place, and the rest is printed. 2 when a file cannot be read, or is of another program.`,
  example: 'sluice import nginx /etc/nginx/nginx.conf --output sluice',
  async run({ values, positionals: [format = '', ...files] }, io) {
    if (format === 'openapi') return importOpenApi(files, groupingOf(values.by), values, io)
    const importer = Object.hasOwn(IMPORTERS, format) ? IMPORTERS[format] : undefined
    const other = Object.hasOwn(OTHER_PROGRAMS, format) ? OTHER_PROGRAMS[format] : undefined
    if (other !== undefined) throw new Unusable(other)
    if (importer === undefined) {
      throw new Unusable(`"import" reads ${listed(FORMATS)}, not "${format}".${didYouMean(format, FORMATS)}`)
    }
    if (values.by !== undefined) throw new Unusable('--by is for openapi only.')
    const [file = '', ...others] = files
    if (files.length > importer.most) {
      const number = importer.most === 1 ? 'one file' : `at most ${importer.most} files`
      throw new Unusable(`"import ${format}" reads ${number}, but "${files[importer.most]}" is one more.`)
    }
    const into = new Migration(file)
    const texts = others.map(other => ({ file: other, text: textOf(other) }))
    importer.read({ text: textOf(file) }, into, texts, file)
    return writeMigration(into, values, io)
  },
})

function importOpenApi(
  files: readonly string[],
  grouping: Grouping | undefined,
  { output, json }: OutputOptions,
  io: Io,
): ExitCode {
  const reading = new OpenApiImport(grouping)
  for (const file of files) reading.read(file, textOf(file))
  const { buckets, unnamed, problems } = reading.result()
  const suggested = suggestedLimits(buckets)
  const answer = { buckets: Object.fromEntries(buckets), suggested, unnamed, problems }
  const text = json ? asJson(answer) : policyText(buckets, files)
  if (output === undefined) io.out(text)
  else writeNew(output, text)
  print(problems, io)
  const patterns = [...buckets.values()].flat().length
  io.err(
    `${count(buckets.size, 'bucket')} with ${count(patterns, 'pattern')}; ${count(unnamed, 'operation')} without a bucket.\n`,
  )
  return problems.length > 0 || buckets.size === 0 ? 1 : 0
}

function writeMigration(into: Migration, { output, json }: OutputOptions, io: Io): ExitCode {
  if (into.isUnreadable) {
    for (const one of into.list)
      io.err(`${printable(formatProblem(one)).replace(': Not the same: ', ': ')}\n`)
    io.err('This file cannot be imported.\n')
    return 2
  }
  const files = into.files()
  const { list, unneeded } = into
  if (output !== undefined) {
    makeNew(output)
    makeNew(join(output, 'policies'))
    for (const [name, text] of files) writeNew(join(output, name), text)
  } else if (json) {
    io.out(asJson({ files: Object.fromEntries(files), problems: list, notNeeded: unneeded }))
  } else io.out([...files].map(([name, text]) => `# ==> ${name} <==\n${text}`).join('\n'))
  io.err(into.text())
  const leftOut = list.filter(({ group }) => group !== 'counts').length
  io.err(
    `${count(files.size, 'file')}; ${count(leftOut, 'thing')} left out, ${list.length - leftOut} not quite the same.\n`,
  )
  return leftOut > 0 ? 1 : 0
}

const asJson = (answer: object): string => `${JSON.stringify(answer, null, 2)}\n`

function print(problems: readonly Problem[], io: Io): void {
  for (const problem of problems) io.err(`${printable(formatProblem(problem))}\n`)
}

function groupingOf(by: string | undefined): Grouping | undefined {
  const grouping = GROUPINGS.find(one => one === by)
  if (by === undefined || grouping !== undefined) return grouping
  throw new Unusable(`--by must be ${listed(GROUPINGS)}, but it is "${by}".${didYouMean(by, GROUPINGS)}`)
}

function textOf(file: string): string {
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new Unusable(`${file} is larger than 16 MiB.`)
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof Unusable) throw error
    if (error instanceof TypeError) throw new Unusable(`${file} is not UTF-8 text.`)
    throw unreadable(file, error)
  }
}

/** The patterns of each bucket. */
type BucketPatterns = ReadonlyMap<string, readonly string[]>

const READS = /^(GET|HEAD|OPTIONS) /

/** Suggested limits by bucket: nothing is known of the traffic, except that writes cost more than reads. */
function suggestedLimits(buckets: BucketPatterns): Record<string, { burst: number; sustained: number }> {
  return Object.fromEntries(
    [...buckets].map(([name, patterns]) => {
      const isRead = patterns.every(pattern => READS.test(pattern))
      return [name, isRead ? { burst: 20, sustained: 600 } : { burst: 5, sustained: 150 }]
    }),
  )
}

/** A policy file with suggested limits as comments. Patterns are quoted, so that YAML does not interpret them. */
function policyText(buckets: BucketPatterns, files: readonly string[]): string {
  const head = `# From ${printable(files.map(file => basename(file)).join(', '))}.\nversion: 1\nkind: project-limits\n`
  if (buckets.size === 0) return `${head}buckets: {}\n`
  const keyText = (name: string): string => (/^(null|true|false)$/.test(name) ? JSON.stringify(name) : name)
  const sections = [...buckets].map(
    ([name, patterns]) =>
      `  ${keyText(name)}:\n${patterns.map(pattern => `    - ${JSON.stringify(pattern)}\n`).join('')}`,
  )
  const quotas = Object.entries(suggestedLimits(buckets)).map(
    ([name, { burst, sustained }]) =>
      `#       ${keyText(name)}: { burst: ${burst}, sustained: ${sustained} }\n`,
  )
  return `${head}buckets:\n${sections.join('')}
# Suggested limits, for every plan and environment: a place to begin, not measured. Remove the "#" and choose your numbers.
# What falls into no bucket is not limited, unless a bucket has "*".
# limits:
#   - for: [{}]
#     quotas:
${quotas.join('')}`
}
