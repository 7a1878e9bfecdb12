/** `sluice check`: everything that is wrong with a configuration, without running it. */
import { loadOrFail } from '../gateway/load.js'
import { defineCommand, NO_OPERANDS } from './command.js'
import { CONFIG, quiet } from './config.js'

export const check = defineCommand({
  name: 'check',
  summary: 'Check the configuration without running it',
  operands: NO_OPERANDS,
  options: { config: CONFIG },
  details:
    'Lists all that is wrong at once, as file:line:col path: sentence. Exit code 0 when good, 1 when not.',
  example: 'sluice check --config ./config',
  async run({ values }, io) {
    const { config, compiled } = loadOrFail(values.config, io.env, quiet)
    const { gateway, projects, policies } = config
    io.out(
      `${config.gatewayFile}: good. ${Object.keys(gateway.upstreams).length} upstreams, ${projects.length} projects, ` +
        `${policies.length} policy files, revision ${compiled.revision}.\n`,
    )
    return 0
  },
})
