/** The gateway with 100000 projects, one host each; defined in code, because the loader refuses files of that size. */

import { compile } from '../../../gateway/configured/compile.js'
import { loadOrFail } from '../../../gateway/configured/load.js'
import { startGateway } from '../../../gateway/run/gateway.js'
import { openWrongKeys } from '../../../gateway/run/wrong-keys.js'

const [folder = ''] = process.argv.slice(2)
const silent = () => undefined
const error = (fields: object, message: string) => console.error(message, fields)
const log = { debug: silent, info: silent, warn: silent, error }
const loaded = await loadOrFail(folder, process.env, log)
const projects = Array.from({ length: Number(process.env.PROJECTS) }, (_, i) => ({
  id: `p${i}`,
  plan: 'growth' as const,
  environment: 'production' as const,
  hosts: [`h${i}.test`],
  paths: [],
  apiKeyHashes: [],
  overrides: {},
}))
const config = { ...loaded.config, projects }
const compiled = compile(config, loaded.plugins, log)
if ('problems' in compiled) throw new Error(JSON.stringify(compiled.problems))
const first = { ...loaded, config, ...compiled }
await startGateway({
  first,
  load: async () => first,
  embedded: () => Promise.reject(new Error('none')),
  secret: Buffer.from('bench'),
  wrongKeys: openWrongKeys(config.gateway.redis, log).wrongKeys,
  webhookTargets: { allowPrivate: false, allowHttp: false },
  log,
})
