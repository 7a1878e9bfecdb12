/** `sluice explain`: why a request is, or would be, allowed or refused. */
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import type { Asked } from '../../gateway/admin/explain.js'
import type { Explanation } from '../../gateway/explain/explain.js'
import { CONFIG, defineCommand, Unusable } from '../command.js'
import { explainLive } from './live.js'
import { explainOffline } from './offline.js'
import { writeExplanation } from './text.js'

export const explain = defineCommand({
  name: 'explain',
  summary: 'Explain which limits apply to a request, and why',
  operands: { usage: 'METHOD PATH', least: 2, most: 2 },
  options: {
    project: { type: 'string', value: 'ID', help: 'the project that sends it' },
    host: { type: 'string', value: 'NAME', help: "the host it asks; default: the project's first" },
    header: {
      type: 'string',
      value: "'NAME: VALUE'",
      multiple: true,
      help: 'a field of the request; may be given several times',
    },
    ip: { type: 'string', value: 'ADDRESS', help: 'where it comes from; default: 127.0.0.1' },
    body: { type: 'string', value: 'TEXT', help: 'its body, for rules that look for an e-mail or a flow id' },
    config: CONFIG,
    live: {
      type: 'string',
      value: 'WHERE',
      help: 'ask the running gateway: its admin address, or the configuration that names it',
    },
    json: { type: 'boolean', help: 'one JSON object instead of text' },
  },
  details: `Takes the same steps as the gateway, by the gateway's own code. Shows who asks, the normal form of the path, the upstream, the bucket and why not another, each rule with its key, quota and answer, and the fields of the response.

From the files alone it describes a first request. With --live the running gateway answers from its own counters, which are only read. Headers and bodies are never shown; keys made of them are hashed.

Exit code 0 when there is an explanation, whatever the answer is; 1 when the gateway of --live gives none; 2 for wrong usage, an unknown project or a configuration that cannot be loaded.`,
  example: `sluice explain GET /admin/identities --project acme-production
sluice explain POST /self-service/recovery --host acme.localhost --ip 203.0.113.7 --live http://127.0.0.1:8081`,
  async run({ values, positionals: [method = '', target = ''] }, io) {
    const { project, host, ip, body } = values
    const asked: Asked = {
      method: methodOf(method),
      target,
      ...(project !== undefined && { project }),
      ...(host !== undefined && { host }),
      ...(ip !== undefined && { ip: addressOf(ip) }),
      ...(body !== undefined && { body }),
      headers: values.header.map(fieldOf),
    }
    const explanation: Explanation =
      values.live === undefined
        ? await explainOffline(asked, values.config, io)
        : await explainLive(asked, values.live, io)
    if (values.json) io.out(`${JSON.stringify(explanation, null, 2)}\n`)
    else writeExplanation(explanation, io)
    return 0
  },
})

function methodOf(word: string): string {
  const method = word.toUpperCase()
  if (METHODS.includes(method)) return method
  throw new Unusable(`"${word}" is not a method. Write the method first, then the path: GET /path.`)
}

function addressOf(text: string): string {
  if (isIP(text) !== 0) return text
  throw new Unusable(`--ip must be an address such as 203.0.113.7 or 2001:db8::1, but it is "${text}".`)
}

function fieldOf(text: string): [string, string] {
  const [, name, value] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):([^\r\n\0]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new Unusable(
      "--header must be written as 'name: value', with a name of letters, digits and dashes.",
    )
  }
  if (name.toLowerCase() === 'host') throw new Unusable('Write the host as --host NAME.')
  return [name, value.trim()]
}
