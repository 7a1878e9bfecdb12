/** `npm run schemas`: writes the editor's schemas of the configuration (config/*.schema.json). */
import { writeFileSync } from 'node:fs'
import { editorSchemas } from '../config/schema/generate.js'
import { pluginSchemas } from '../gateway/plugins.js'
import { inProject } from './lib/run.mjs'

for (const [name, text] of Object.entries(editorSchemas(pluginSchemas))) {
  writeFileSync(inProject('config', name), text)
  console.log(`config/${name}`)
}
