/** `sluice schema`: what an editor needs to complete and check the configuration's files. */
import { editorSchemas } from '../config/generate.js'
import { pluginSchemas } from '../gateway/plugins.js'
import { didYouMean } from './arguments.js'
import { defineCommand, Unusable } from './command.js'

const SUFFIX = '.schema.json'

export const schema = defineCommand({
  name: 'schema',
  summary: "Print the schema of one of the configuration's files",
  operands: { usage: '[NAME]', least: 0, most: 1 },
  options: { json: { type: 'boolean', help: 'all schemas as one JSON object, by name' } },
  details:
    'Draft-07 JSON Schema, as yaml-language-server reads it. Without NAME it lists the names. Name the file in the first line: # yaml-language-server: $schema=./volumetric.schema.json',
  example: 'sluice schema volumetric > volumetric.schema.json',
  async run({ values, positionals: [name] }, io) {
    const schemas = new Map(
      Object.entries(editorSchemas(pluginSchemas)).map(([file, text]) => [
        file.slice(0, -SUFFIX.length),
        text,
      ]),
    )
    const names = [...schemas.keys()]
    const text = name === undefined ? undefined : schemas.get(name)
    if (name !== undefined && text === undefined) {
      throw new Unusable(
        `There is no schema "${name}".${didYouMean(name, names)} Known: ${names.join(', ')}.`,
      )
    }
    if (text !== undefined) io.out(text)
    else if (values.json) io.out(`${JSON.stringify(documents(schemas), null, 2)}\n`)
    else io.out(names.map(one => `${one}\n`).join(''))
    return 0
  },
})

function documents(schemas: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries([...schemas].map(([name, text]) => [name, JSON.parse(text)]))
}
