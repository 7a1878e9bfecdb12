/** `sluice health`: checks whether the gateway of this configuration is ready, as for a container's health check. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { adminAddress } from '../config/admin-address.js'
import { urlOf } from '../config/words/address.js'
import { Failure } from '../gateway/errors.js'
import { CONFIG, defineCommand, NO_OPERANDS } from './command.js'
import { printable } from './text.js'

const PATIENCE_MS = 2000

export const health = defineCommand({
  name: 'health',
  summary: 'Check whether the running gateway is ready',
  operands: NO_OPERANDS,
  options: { config: CONFIG, json: { type: 'boolean', help: 'one JSON object instead of text' } },
  details:
    'Asks /readyz on the admin port that gateway.yaml names, and reads nothing else. Exit code 0 when ready, 1 when not.',
  example: 'sluice health --config ./config',
  async run({ values }, io) {
    const address = adminAddress(values.config, io.env)
    if ('fault' in address) throw new Failure(address.fault)
    const fault = await faultOf(`${urlOf(address)}/readyz`)
    if (values.json) io.out(`${JSON.stringify({ ready: fault === undefined, fault: fault ?? null })}\n`)
    else if (fault === undefined) io.out('ready\n')
    else throw new Failure(fault)
    return fault === undefined ? 0 : 1
  },
})

/** Why the gateway is not ready, as a sentence; undefined when it is. Node's `fetch` takes as long to load as the rest. */
async function faultOf(url: string): Promise<string | undefined> {
  const asked = get(url, { signal: AbortSignal.timeout(PATIENCE_MS), agent: false })
  const [answer] = (await once(asked, 'response').catch(() => [])) as [IncomingMessage?]
  if (answer === undefined) return `Nothing answers on ${url}.`
  if (answer.statusCode === 200) {
    answer.resume()
    return undefined
  }
  const { detail } = (await json(answer).catch(() => ({}))) as { detail?: unknown }
  return printable(typeof detail === 'string' ? detail : `${url} answers ${answer.statusCode}.`)
}
