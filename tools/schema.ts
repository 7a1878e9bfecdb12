/** `sluice schema`: the schemas with which an editor completes and checks the configuration's files. */
import { gatewayFileOf, readText } from '../config/files.js'
import { listProblems } from '../config/problem.js'
import { editorSchemas } from '../config/schema/generate.js'
import { loadPlugins } from '../gateway/configured/third-party/load.js'
import { type PluginSet, pluginSchemas } from '../gateway/plugins.js'
import { didYouMean } from './arguments.js'
import { defineCommand, Unusable } from './command.js'

const SUFFIX = '.schema.json'

export const schema = defineCommand({
  name: 'schema',
  summary: 'Print the schema of a configuration file',
  operands: { usage: '[NAME]', least: 0, most: 1 },
  options: {
    config: {
      type: 'string',
      value: 'PATH',
      help: 'gateway.yaml or its folder: include its plugins',
    },
    json: { type: 'boolean', help: 'all schemas as one JSON object, by name' },
  },
  details:
    'Draft-07 JSON Schema, as yaml-language-server reads it. Without NAME it lists the names. Refer to the file in the first line of your YAML: # yaml-language-server: $schema=./volumetric.schema.json',
  example: 'sluice schema volumetric > volumetric.schema.json',
  async run({ values, positionals: [name] }, io) {
    const schemas = values.config === undefined ? pluginSchemas : await schemasOf(values.config, io.env)
    const byName = new Map(
      Object.entries(editorSchemas(schemas)).map(([file, text]) => [file.slice(0, -SUFFIX.length), text]),
    )
    const names = [...byName.keys()]
    const text = name === undefined ? undefined : byName.get(name)
    if (name !== undefined && text === undefined) {
      throw new Unusable(
        `There is no schema "${name}".${didYouMean(name, names)} Known: ${names.join(', ')}.`,
      )
    }
    if (text !== undefined) io.out(text)
    else if (values.json) io.out(`${JSON.stringify(documents(byName), null, 2)}\n`)
    else io.out(names.map(one => `${one}\n`).join(''))
    return 0
  },
})

/** Includes the schemas of the plugins that the configuration names. */
async function schemasOf(config: string, env: NodeJS.ProcessEnv): Promise<PluginSet['schemas']> {
  const file = gatewayFileOf(config)
  const read = readText(file)
  if ('fault' in read) throw new Unusable(`${file}: ${read.fault}`)
  const { plugins, problems } = await loadPlugins(config, env)
  if (problems.length > 0) throw new Unusable(listProblems(problems))
  return plugins.schemas
}

function documents(schemas: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries([...schemas].map(([name, text]) => [name, JSON.parse(text)]))
}
