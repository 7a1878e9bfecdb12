// Writes the editor's schemas of the configuration (config/*.schema.json) from the built code: run after `npm run
// build`.
import { writeFileSync } from 'node:fs'
import { editorSchemas } from '../dist/config/schema/generate.js'
import { pluginSchemas } from '../dist/gateway/plugins.js'

const folder = new URL('../config/', import.meta.url)
for (const [name, text] of Object.entries(editorSchemas(pluginSchemas))) {
  writeFileSync(new URL(name, folder), text)
  console.log(`config/${name}`)
}
