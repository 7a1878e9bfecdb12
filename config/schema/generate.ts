/** JSON Schemas for editors (draft-07, for yaml-language-server). */
import type { TSchema } from 'typebox'
import { PROJECT_LIMITS } from '../words/bucket.js'
import { ACCESS, accessSchema } from './access.js'
import { DURATION_PATTERN } from './duration.js'
import { gatewaySchema } from './gateway.js'
import { PERCENT_PATTERN } from './percent.js'
import type { PluginSchemas } from './plugin.js'
import { projectLimitsSchema, ruleFileSchema } from './policy.js'
import { projectsSchema } from './projects.js'

interface Schema {
  readonly [keyword: string]: unknown
}

/** Keywords that only our own validator knows. */
const OWN_KEYWORDS = new Set([
  'expected',
  'secret',
  'hidden',
  'whyRequired',
  'shorthand',
  'format',
  'duration',
  'percent',
  'size',
])
/** Keywords that hold one schema, a list of schemas, or schemas by name. */
const HOLDS_ONE = new Set([
  'items',
  'additionalProperties',
  'propertyNames',
  'contains',
  'if',
  'then',
  'else',
])
const HOLDS_LIST = new Set(['allOf'])
const HOLDS_NAMED = new Set(['properties'])
/** Of these, the keywords whose values an operator writes and may replace by `${NAME}`. */
const HOLDS_VALUE = new Set(['items', 'additionalProperties', 'properties'])

const REFERENCE = {
  type: 'string',
  pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}',
  description: 'From the environment, with a default after ":-".',
}

/** The text of every generated file, by its name in the config folder. */
export function editorSchemas(plugins: PluginSchemas): Record<string, string> {
  const files: Record<string, string> = {
    'gateway.schema.json': textOf('Sluice: gateway.yaml', gatewaySchema(plugins)),
    'projects.schema.json': textOf('Sluice: projects.yaml', projectsSchema),
    'project-limits.schema.json': textOf('Sluice: policies, project-limits', projectLimitsSchema),
    [`${ACCESS}.schema.json`]: textOf('Sluice: policies, access', accessSchema),
  }
  for (const [kind, schema] of Object.entries(plugins.limit)) {
    if (kind === PROJECT_LIMITS) continue
    files[`${kind}.schema.json`] = textOf(`Sluice: policies, ${kind}`, ruleFileSchema(kind, schema))
  }
  return files
}

function textOf(title: string, schema: TSchema): string {
  const head = { $schema: 'http://json-schema.org/draft-07/schema#', title }
  const document = { ...head, ...editorSchema(schema as Schema), definitions: { reference: REFERENCE } }
  return `${JSON.stringify(document, null, 2)}\n`
}

function editorSchema(schema: Schema): Schema {
  const result: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'duration') result.pattern = DURATION_PATTERN
    if (keyword === 'percent') result.pattern = PERCENT_PATTERN
    if (keyword === 'required') {
      const required = (value as string[]).filter(name => !hasDefault(schema, name))
      if (required.length > 0) result.required = required
    } else if (!OWN_KEYWORDS.has(keyword)) result[keyword] = inner(keyword, value)
  }
  return result
}

function inner(keyword: string, value: unknown): unknown {
  const convert = HOLDS_VALUE.has(keyword) ? valueSchema : editorSchema
  if (HOLDS_ONE.has(keyword) && isSchema(value)) return convert(value)
  if (HOLDS_LIST.has(keyword)) return (value as Schema[]).map(convert)
  if (!HOLDS_NAMED.has(keyword)) return value
  const named = Object.entries(value as Record<string, Schema>)
  return Object.fromEntries(named.map(([name, schema]) => [name, convert(schema)]))
}

/** A number, a duration or one of a list of words may also be written as `${NAME}`; free text allows it anyway. */
function valueSchema(schema: Schema): Schema {
  const converted = editorSchema(schema)
  const types = [schema.type].flat()
  const isScalar = types.length > 0 && !types.includes('object') && !types.includes('array')
  const isFreeText = schema.type === 'string' && !converted.enum && !converted.pattern
  if (!isScalar || isFreeText || 'const' in schema || schema.type === undefined) return converted
  const { description, default: fallback, ...rest } = converted
  return {
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
    anyOf: [rest, { $ref: '#/definitions/reference' }],
  }
}

function hasDefault(schema: Schema, name: string): boolean {
  const property = (schema.properties as Record<string, Schema> | undefined)?.[name]
  return property !== undefined && 'default' in property
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null
}
