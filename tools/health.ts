/** `sluice health`: is the gateway that runs with this configuration ready? For a container's health check. */
import { Failure, loadOrFail } from '../gateway/load.js'
import { defineCommand, NO_OPERANDS } from './command.js'
import { CONFIG, quiet } from './config.js'

const PATIENCE_MS = 2000

export const health = defineCommand({
  name: 'health',
  summary: 'Ask the running gateway whether it is ready',
  operands: NO_OPERANDS,
  options: { config: CONFIG },
  details: 'Asks /readyz on the admin port that the configuration names. Exit code 0 when ready, 1 when not.',
  example: 'sluice health --config ./config',
  async run({ values }, io) {
    const { config } = await loadOrFail(values.config, io.env, quiet)
    const { host, port } = config.gateway.admin
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`
    const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => undefined)
    if (answer === undefined) throw new Failure(`Nothing answers on ${url}.`)
    const text = await answer.text()
    if (!answer.ok) throw new Failure(`Not ready: ${text}`)
    io.out('ready\n')
    return 0
  },
})
