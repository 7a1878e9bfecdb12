/** `sluice import openapi`: a policy file's buckets from OpenAPI documents. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { formatProblem, listed } from '../../config/problem.js'
import { didYouMean } from '../arguments.js'
import { defineCommand, Unusable } from '../command.js'
import { count, printable } from '../text.js'
import { unreadable } from '../unreadable.js'
import { GROUPINGS, type Grouping } from './group.js'
import { OpenApiImport } from './openapi.js'
import { policyText, suggestedLimits } from './policy-text.js'

const MAX_FILE_BYTES = 16 * 1024 * 1024

export const importCommand = defineCommand({
  name: 'import',
  summary: 'Make buckets from OpenAPI documents',
  operands: { usage: 'openapi FILE...', least: 2, most: Number.POSITIVE_INFINITY },
  options: {
    by: {
      type: 'string',
      value: 'GROUP',
      help: 'tag, path or operation: the bucket of operations that name none',
    },
    output: { type: 'string', value: 'FILE', help: 'write there, to a new file, instead of standard output' },
    json: { type: 'boolean', help: 'one JSON object instead of YAML' },
  },
  details: `Reads OpenAPI 3 documents, JSON or YAML. An operation, or its path, names its bucket in x-sluice-bucket or x-ory-ratelimit-bucket; with --by those that name none are grouped by their first tag, by their path, or one by one. Prints a policy file of kind project-limits with suggested limits as comments, for you to choose. An operation without a bucket falls into a less specific one, such as "*".

Exit code 1 when two operations that mean the same requests name different buckets, or something had to be left out. It is reported with its place, and the rest is printed.`,
  example: 'sluice import openapi api.yaml --by tag > policies/api.yaml',
  async run({ values, positionals: [format, ...files] }, io) {
    if (format !== 'openapi') throw new Unusable(`"import" reads openapi, not "${format}".`)
    const reading = new OpenApiImport(groupingOf(values.by))
    for (const file of files) reading.read(file, textOf(file))
    const { buckets, unnamed, problems } = reading.result()
    const suggested = suggestedLimits(buckets)
    const json = { buckets: Object.fromEntries(buckets), suggested, unnamed, problems }
    const text = values.json ? `${JSON.stringify(json, null, 2)}\n` : policyText(buckets, files)
    if (values.output === undefined) io.out(text)
    else writeNew(values.output, text)
    for (const problem of problems) io.err(`${printable(formatProblem(problem))}\n`)
    const patterns = [...buckets.values()].flat().length
    io.err(
      `${count(buckets.size, 'bucket')} with ${count(patterns, 'pattern')}; ${count(unnamed, 'operation')} without a bucket.\n`,
    )
    return problems.length > 0 || buckets.size === 0 ? 1 : 0
  },
})

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

function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Unusable(
      code === 'EEXIST'
        ? `${file} is there already. Remove it, or name another.`
        : `${file} cannot be written: ${code}.`,
    )
  }
}
