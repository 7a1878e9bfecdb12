/** docs/reference/settings.md: every key of every configuration file, from the schemas that check them. */
import { accessSchema } from '../../dist/config/schema/access.js'
import { gatewaySchema } from '../../dist/config/schema/gateway.js'
import { projectLimitsSchema, ruleFileSchema } from '../../dist/config/schema/policy.js'
import { projectsSchema } from '../../dist/config/schema/projects.js'
import { expectedOf } from '../../dist/config/sentences.js'
import { pluginSchemas } from '../../dist/gateway/plugins.js'

const FILES = [
  ['gateway.yaml', gatewaySchema(pluginSchemas)],
  ['projects.yaml', projectsSchema],
  ['policies, kind project-limits', projectLimitsSchema],
  ['policies, kind in-flight', ruleFileSchema('in-flight', pluginSchemas.limit['in-flight'])],
  ['policies, kind volumetric', ruleFileSchema('volumetric', pluginSchemas.limit.volumetric)],
  ['policies, kind access', accessSchema],
]

export function settingsPage() {
  return `# Settings

Every key of every configuration file. Written by \`npm run docs\` from the schemas that \`sluice check\` uses.

- \`NAME\` stands for a name you choose, \`[]\` for each item of a list. A key may be left out unless it is marked **required**.
- A name is a lowercase letter, then lowercase letters, digits, \`.\`, \`_\` or \`-\`; a word may also hold capitals and begin with a digit.
- A length of time is a whole number and a unit: \`25ms\`, \`2s\`, \`5m\`, \`1h\`, \`7d\`.
- Any single value may be \`\${VARIABLE}\` or \`\${VARIABLE:-default}\`: see [environment variables](environment.md).
- [Policy files](../policies.md) explains what the keys do together.

${FILES.map(([name]) => `- [${name}](#${anchor(name)})`).join('\n')}
${FILES.map(([name, schema]) => `\n## ${name}\n\n${table(schema)}`).join('\n')}
`
}

const anchor = name => name.replace(/[^a-z -]/g, '').replaceAll(' ', '-')

function table(schema) {
  const rows = rowsOf(schema, '').map(
    ([key, what, preset, meaning]) => `| \`${key}\` | ${escaped(what)} | ${preset} | ${escaped(meaning)} |`,
  )
  return `| Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}`
}

/** The keys below a schema, depth first: [key, what it takes, default, meaning]. */
function rowsOf(schema, path) {
  return propertiesOf(schema).flatMap(({ name, property, required }) => {
    const key = `${path}${name}`
    return [
      [key, takes(property), defaultOf(property, required), property.description ?? ''],
      ...below(property, key),
    ]
  })
}

function below(schema, key) {
  const items = branchesOf(schema).flatMap(({ items }) => (items ? [items] : []))
  const named = schema.additionalProperties
  return [
    ...rowsOf(schema, `${key}.`),
    ...items.flatMap(item => rowsOf(item, `${key}[].`)),
    ...(typeof named === 'object'
      ? [[`${key}.NAME`, takes(named), '', ''], ...below(named, `${key}.NAME`)]
      : []),
  ]
}

/** A schema's keys and those that its conditions add; keys that several branches describe alike appear once. */
function propertiesOf(schema) {
  const branches = branchesOf(schema).filter(({ properties }) => properties !== undefined)
  const found = new Map()
  for (const branch of branches) {
    for (const [name, property] of Object.entries(branch.properties)) {
      const isKnown = [...found.values()].some(one => one.name === name)
      if (isKnown && (property.description === undefined || 'const' in property || 'not' in property))
        continue
      const required =
        Boolean(branch.required?.includes(name)) && (branch === schema || branches.length === 1)
      const id = `${name} ${property.description}`
      if (!found.has(id)) found.set(id, { name, property, required })
    }
  }
  return [...found.values()]
}

function branchesOf(schema) {
  const more = [schema.then, schema.else, ...(schema.allOf ?? [])].filter(Boolean)
  return [schema, ...more.flatMap(branchesOf)]
}

function takes(schema) {
  if (schema.expected === undefined && schema.type === 'array') {
    return schema.items ? `a list; each item: ${takes(schema.items)}` : 'a list'
  }
  const words = schema.expected ?? expectedOf(schema)
  if (schema.duration !== undefined) return words.replace(/, such as .*/, '')
  return words.replace(/^(a (?:name|word) of at most [^:]*):.*/, '$1').replace(' of keys and values', '')
}

function defaultOf(schema, required) {
  const { default: value } = schema
  if (value === undefined) return required ? '**required**' : ''
  if (value === '') return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map(item => `\`${item}\``).join(', ')
  return typeof value === 'object' ? '' : `\`${value}\``
}

/** Escapes text for a table cell: a bar would end it, and `<` and `*` would be markup outside of code. */
const escaped = text =>
  text
    .split(/(`[^`]*`)/)
    .map(part => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;').replaceAll('*', '\\*')))
    .join('')
    .replaceAll('|', '\\|')
