/** `sluice import openapi`: the `buckets:` of a policy file from annotated OpenAPI documents. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { formatProblem } from '../../config/problem.js'
import { defineCommand, Unusable } from '../command.js'
import { count, printable } from '../text.js'
import { unreadable } from '../unreadable.js'
import { OpenApiImport } from './openapi.js'

const MAX_FILE_BYTES = 16 * 1024 * 1024
/** Words that YAML does not read as text. */
const NO_TEXT = /^(null|true|false)$/

export const importCommand = defineCommand({
  name: 'import',
  summary: 'Make buckets from annotated OpenAPI documents',
  operands: { usage: 'openapi FILE...', least: 2, most: Number.POSITIVE_INFINITY },
  options: {
    output: { type: 'string', value: 'FILE', help: 'write there, to a new file, instead of standard output' },
    json: { type: 'boolean', help: 'one JSON object instead of YAML' },
  },
  details: `Reads OpenAPI 3 documents, JSON or YAML. Each operation, or its path, names its bucket in x-ory-ratelimit-bucket. Prints the buckets section of a policy file of kind project-limits; the limits are yours to write. An operation without a bucket falls into a less specific one, such as "*".

Exit code 1 when two operations that mean the same requests name different buckets, or something had to be left out: it is told with its place, and the rest is printed.`,
  example: 'sluice import openapi kratos.json hydra.yaml > buckets.yaml',
  async run({ values, positionals: [format, ...files] }, io) {
    if (format !== 'openapi') throw new Unusable(`"import" reads openapi, not "${format}".`)
    const reading = new OpenApiImport()
    for (const file of files) reading.read(file, textOf(file))
    const { buckets, unnamed, problems } = reading.result()
    const json = { buckets: Object.fromEntries(buckets), unnamed, problems }
    const text = values.json ? `${JSON.stringify(json, null, 2)}\n` : yamlOf(buckets, files)
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

/** Patterns stand in quotes, so that nothing in them is YAML's. */
function yamlOf(buckets: ReadonlyMap<string, readonly string[]>, files: readonly string[]): string {
  const head = `# From ${printable(files.map(file => basename(file)).join(', '))}, by x-ory-ratelimit-bucket.\n`
  if (buckets.size === 0) return `${head}buckets: {}\n`
  const sections = [...buckets].map(([name, patterns]) => {
    const key = NO_TEXT.test(name) ? JSON.stringify(name) : name
    return `  ${key}:\n${patterns.map(pattern => `    - ${JSON.stringify(pattern)}\n`).join('')}`
  })
  return `${head}buckets:\n${sections.join('')}`
}
