/** docs/reference/settings.md: every key of every configuration file, from the schemas that check them. */
import { accessSchema } from '../../config/schema/access.js'
import { gatewaySchema } from '../../config/schema/gateway.js'
import { projectLimitsSchema, ruleFileSchema } from '../../config/schema/policy.js'
import { projectsSchema } from '../../config/schema/projects.js'
import { expectedOf } from '../../config/sentences.js'
import { pluginSchemas } from '../../gateway/plugins.js'

/** What is read of a schema. */
interface Schema extends Omit<Parameters<typeof expectedOf>[0], 'properties'> {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly then?: Schema
  readonly else?: Schema
  readonly allOf?: readonly Schema[]
  readonly description?: string
  readonly default?: unknown
}

const FILES: readonly (readonly [name: string, schema: object])[] = [
  ['gateway.yaml', gatewaySchema(pluginSchemas)],
  ['projects.yaml', projectsSchema],
  ['policies, kind project-limits', projectLimitsSchema],
  ['policies, kind in-flight', rulesOf('in-flight')],
  ['policies, kind volumetric', rulesOf('volumetric')],
  ['policies, kind access', accessSchema],
]

function rulesOf(kind: string): object {
  const schema = pluginSchemas.limit[kind]
  if (schema === undefined) throw new Error(`there is no kind ${kind}`)
  return ruleFileSchema(kind, schema)
}

export function settingsPage(): string {
  return `# Settings

Every key of every configuration file. Written by \`npm run docs\` from the schemas that \`sluice check\` uses.

- \`NAME\` stands for a name you choose, \`[]\` for each item of a list. A key may be left out unless it is marked **required**.
- A name is a lowercase letter, then lowercase letters, digits, \`.\`, \`_\` or \`-\`; a word may also hold capitals and begin with a digit.
- A length of time is a whole number and a unit: \`25ms\`, \`2s\`, \`5m\`, \`1h\`, \`7d\`.
- Any single value may be \`\${VARIABLE}\` or \`\${VARIABLE:-default}\`: see [environment variables](environment.md).
- [Policy files](../policies.md) explains what the keys do together.

${FILES.map(([name]) => `- [${name}](#${anchor(name)})`).join('\n')}
${FILES.map(([name, schema]) => `\n## ${name}\n\n${table(schema as Schema)}`).join('\n')}
`
}

const anchor = (name: string) => name.replace(/[^a-z -]/g, '').replaceAll(' ', '-')

function table(schema: Schema): string {
  const rows = rowsOf(schema, '').map(
    ([key, what, preset, meaning]) => `| \`${key}\` | ${escaped(what)} | ${preset} | ${escaped(meaning)} |`,
  )
  return `| Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}`
}

type Row = readonly [key: string, takes: string, preset: string, meaning: string]

/** The keys below a schema, depth first. */
function rowsOf(schema: Schema, path: string): Row[] {
  return propertiesOf(schema).flatMap(({ name, plugin, property, required }) => {
    const key = `${path}${name}`
    const meaning = `${plugin === undefined ? '' : `\`${plugin}\`: `}${property.description ?? ''}`
    const row: Row = [key, takes(property), defaultOf(property, required), meaning]
    return [row, ...below(property, key)]
  })
}

function below(schema: Schema, key: string): Row[] {
  const items = branchesOf(schema).flatMap(({ items }) => (items ? [items] : []))
  const named = schema.additionalProperties
  const rows = [...rowsOf(schema, `${key}.`), ...items.flatMap(item => rowsOf(item, `${key}[].`))]
  if (typeof named !== 'object') return rows
  return [...rows, [`${key}.NAME`, takes(named), '', ''], ...below(named, `${key}.NAME`)]
}

interface Property {
  readonly name: string
  /** The plugin whose setting it is, where several share a list. */
  readonly plugin: unknown
  readonly property: Schema
  readonly required: boolean
}

/** A schema's keys and those that its conditions add; keys that several branches describe alike appear once. */
function propertiesOf(schema: Schema): Property[] {
  const branches = branchesOf(schema).filter(({ properties }) => properties !== undefined)
  const found = new Map<string, Property>()
  for (const branch of branches) {
    const plugin = branch.properties?.plugin?.const
    for (const [name, property] of Object.entries(branch.properties ?? {})) {
      const isKnown = [...found.values()].some(one => one.name === name)
      if (isKnown && (property.description === undefined || 'const' in property || 'not' in property))
        continue
      const required =
        Boolean(branch.required?.includes(name)) &&
        (branch === schema || branches.length === 1 || plugin !== undefined)
      const id = `${name} ${property.description}`
      if (!found.has(id)) found.set(id, { name, plugin, property, required })
    }
  }
  return [...found.values()]
}

function branchesOf(schema: Schema): Schema[] {
  const more = [schema.then, schema.else, ...(schema.allOf ?? [])].filter(branch => branch !== undefined)
  return [schema, ...more.flatMap(branchesOf)]
}

function takes(schema: Schema): string {
  if (schema.expected === undefined && schema.type === 'array') {
    return schema.items ? `a list; each item: ${takes(schema.items)}` : 'a list'
  }
  const words = schema.expected ?? expectedOf(schema)
  if (schema.duration !== undefined) return words.replace(/, such as .*/, '')
  return words.replace(/^(a (?:name|word) of at most [^:]*):.*/, '$1').replace(' of keys and values', '')
}

function defaultOf(schema: Schema, required: boolean): string {
  const { default: value } = schema
  if (value === undefined) return required ? '**required**' : ''
  if (value === '') return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map(item => `\`${item}\``).join(', ')
  return typeof value === 'object' ? '' : `\`${value}\``
}

/** Escapes text for a table cell: a bar would end it, and `<` and `*` would be markup outside of code. */
const escaped = (text: string) =>
  text
    .split(/(`[^`]*`)/)
    .map(part => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;').replaceAll('*', '\\*')))
    .join('')
    .replaceAll('|', '\\|')
