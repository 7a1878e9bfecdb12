/** `sluice serve`: the gateway as a process, which runs until it is told to stop. */
import { defineCommand, NO_OPERANDS } from './command.js'
import { CONFIG } from './config.js'

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the gateway',
  operands: NO_OPERANDS,
  options: { config: CONFIG },
  details: `SIGTERM and SIGINT let running requests finish, SIGHUP reads the configuration anew. Its log goes to stdout: JSON
lines, or text on a terminal.`,
  example: 'sluice serve --config ./config',
  async run({ values }) {
    const gateway = await import('../gateway/run/serve.js')
    await gateway.serve(values.config)
    return 0
  },
})
