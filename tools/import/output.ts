/** Documents as an import writes them: YAML to read and edit, which `sluice check` accepts. */
import { basename } from 'node:path'
import { accessSchema } from '../../config/schema/access.js'
import { projectLimitsSchema, ruleFileSchema } from '../../config/schema/policy.js'
import { projectsSchema } from '../../config/schema/projects.js'
import { createValidator, type Validator } from '../../config/validate.js'
import { UNSAFE_KEYS } from '../../config/yaml.js'
import { inFlight } from '../../gateway/decide/in-flight.js'
import { volumetric } from '../../gateway/decide/volumetric.js'
import { apiKey } from '../../gateway/identify/api-key.js'
import { printable } from '../text.js'

const SCHEMAS = {
  volumetric: () => ruleFileSchema('volumetric', volumetric.schema),
  'in-flight': () => ruleFileSchema('in-flight', inFlight.schema),
  access: () => accessSchema,
  'project-limits': () => projectLimitsSchema,
  projects: () => projectsSchema,
  'api-key': () => apiKey.schema,
}

export type DocumentKind = keyof typeof SCHEMAS

const validators = new Map<DocumentKind, Validator>()

/** The first fault that the loader would find in a document of that kind, as a sentence; undefined when there is none. */
export function faultIn(kind: DocumentKind, document: object): string | undefined {
  const validate = validators.get(kind) ?? createValidator(SCHEMAS[kind]())
  validators.set(kind, validate)
  // A copy, because validation fills in defaults.
  return validate(structuredClone(document), () => [])[0]?.message
}

/** An entry, and the place it came from, which is written above it as a comment. */
export class From {
  readonly place: string
  readonly value: object

  constructor(place: string, value: object) {
    this.place = place
    this.value = value
  }
}

/** Text that YAML reads as the same text without quotes, also between brackets; durations too. */
const PLAIN = /^(?:[A-Za-z/](?:[A-Za-z0-9 ._/*-]*[A-Za-z0-9._/*-])?|\d+(?:ms|s|m|h|d))$/
const NO_TEXT = /^(null|true|false)$/i

/** A whole document, in block style with flow style for lists of words. */
export const yamlText = (document: object): string => `${block(document, '').join('\n')}\n`

function block(value: unknown, pad: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(item => {
      const { inner, head } = opened(item, pad)
      if (isFlow(inner)) return [...head, `${pad}- ${flow(inner)}`]
      const [first = '', ...rest] = block(inner, `${pad}  `)
      return [...head, `${pad}- ${first.slice(pad.length + 2)}`, ...rest]
    })
  }
  return Object.entries(value as object).flatMap(([name, member]) => {
    if (member === undefined) return []
    const { inner, head } = opened(member, pad)
    const key = `${pad}${scalar(name)}:`
    return isFlow(inner) ? [...head, `${key} ${flow(inner)}`] : [...head, key, ...block(inner, `${pad}  `)]
  })
}

const opened = (value: unknown, pad: string): { inner: unknown; head: string[] } =>
  value instanceof From
    ? { inner: value.value, head: [`${pad}# ${value.place}`] }
    : { inner: value, head: [] }

/** True for scalars, lists of scalars, and short maps of scalars. */
function isFlow(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof From || Object.values(value).some(member => typeof member === 'object')) return false
  return Array.isArray(value) || flow(value).length <= 80
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null) return scalar(value)
  const pairs = Object.entries(value).filter(([, member]) => member !== undefined)
  const texts = pairs.map(([key, member]) => `${scalar(key)}: ${flow(member)}`)
  return texts.length === 0 ? '{}' : `{ ${texts.join(', ')} }`
}

const scalar = (value: unknown): string =>
  typeof value === 'string' && PLAIN.test(value) && !NO_TEXT.test(value) ? value : JSON.stringify(value)

const LONGEST_NAME = 64

/** `listItems` → `list-items`, `/items/{id}` → `items-id`. */
export function plainName(text: string): string {
  const words = text
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-$/g, '')
  const name = words.slice(0, LONGEST_NAME).replace(/-$/, '') || 'root'
  return UNSAFE_KEYS.has(name) ? `${name}-bucket` : name
}

/** The patterns of each bucket. */
export type BucketPatterns = ReadonlyMap<string, readonly string[]>

const READS = /^(GET|HEAD|OPTIONS) /

/** Suggested limits by bucket: nothing is known of the traffic, except that writes cost more than reads. */
export function suggestedLimits(
  buckets: BucketPatterns,
): Record<string, { burst: number; sustained: number }> {
  return Object.fromEntries(
    [...buckets].map(([name, patterns]) => {
      const isRead = patterns.every(pattern => READS.test(pattern))
      return [name, isRead ? { burst: 20, sustained: 600 } : { burst: 5, sustained: 150 }]
    }),
  )
}

/** A policy file with suggested limits as comments. Patterns are quoted, so that YAML does not interpret them. */
export function policyText(buckets: BucketPatterns, files: readonly string[]): string {
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
