/** The gateway with 100000 projects, one host each; defined in code, because the loader refuses files of that size. */
import { loadConfig } from '../../../dist/config/load.js'
import { compile } from '../../../dist/gateway/configured/compile.js'
import { builtIn } from '../../../dist/gateway/plugins.js'
import { startGateway } from '../../../dist/gateway/run/start.js'

const { CONFIG, PROJECTS } = process.env
const plugins = { names: [], ...builtIn }
const log = { debug() {}, info() {}, warn() {}, error: (fields, message) => console.error(message, fields) }
const loaded = loadConfig(CONFIG, { env: process.env, plugins: builtIn.schemas })
if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
const projects = Array.from({ length: Number(PROJECTS) }, (_, i) => ({
  id: `p${i}`,
  plan: 'growth',
  environment: 'production',
  hosts: [`h${i}.test`],
  paths: [],
  apiKeyHashes: [],
  overrides: {},
}))
const config = { ...loaded.config, projects }
const compiled = compile(config, plugins, log)
if ('problems' in compiled) throw new Error(JSON.stringify(compiled.problems))
await startGateway({
  first: { ...loaded, config, ...compiled, plugins },
  load: async () => loaded,
  embedded: () => Promise.reject(new Error('none')),
  secret: Buffer.from('bench'),
  log,
})
