/** `sluice health`: checks whether the gateway of this configuration is ready, as for a container's health check. */
import { loadOrFail } from '../gateway/configured/load.js'
import { Failure } from '../gateway/errors.js'
import { defineCommand, NO_OPERANDS } from './command.js'
import { CONFIG, quiet } from './config.js'
import { printable } from './text.js'

const PATIENCE_MS = 2000

export const health = defineCommand({
  name: 'health',
  summary: 'Check whether the running gateway is ready',
  operands: NO_OPERANDS,
  options: { config: CONFIG, json: { type: 'boolean', help: 'one JSON object instead of text' } },
  details: 'Asks /readyz on the admin port that the configuration names. Exit code 0 when ready, 1 when not.',
  example: 'sluice health --config ./config',
  async run({ values }, io) {
    const { config, compiled } = await loadOrFail(values.config, io.env, quiet)
    await compiled.close()
    const { host, port } = config.gateway.admin
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`
    const fault = await faultOf(url)
    if (values.json) io.out(`${JSON.stringify({ ready: fault === undefined, fault: fault ?? null })}\n`)
    else if (fault === undefined) io.out('ready\n')
    else throw new Failure(fault)
    return fault === undefined ? 0 : 1
  },
})

/** Why the gateway is not ready, as a sentence; undefined when it is. */
async function faultOf(url: string): Promise<string | undefined> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => undefined)
  if (answer === undefined) return `Nothing answers on ${url}.`
  if (answer.ok) return undefined
  const { detail } = (await answer.json().catch(() => ({}))) as { detail?: unknown }
  return printable(typeof detail === 'string' ? detail : `${url} answers ${answer.status}.`)
}
