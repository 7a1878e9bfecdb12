/** `sluice explain`: why a request is, or would be, allowed or refused. */

import { randomBytes } from 'node:crypto'
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import type { Asked } from '../../gateway/admin/explain.js'
import { createLimiters, toolsOf } from '../../gateway/configured/plugins.js'
import { Questions } from '../../gateway/decide/question.js'
import { openStore } from '../../gateway/decide/store/open.js'
import { Failure, UnknownQuestion } from '../../gateway/errors.js'
import { explain as explainRequest } from '../../gateway/explain/explain.js'
import type { Explanation } from '../../gateway/explain/explanation.js'
import { UnknownHosts } from '../../gateway/identify/unknown.js'
import { adminPort, askAdmin } from '../admin.js'
import { didYouMean } from '../arguments.js'
import { CONFIG, defineCommand, Unusable } from '../command.js'
import { loadInput, quiet } from '../config.js'
import type { Io } from '../io.js'
import { printable } from '../text.js'
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
    body: {
      type: 'string',
      value: 'TEXT',
      help: 'its body, for rules that look for an e-mail, a flow id or a JSON-RPC call',
    },
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

/** By the running gateway, with its counters. @param where the gateway's admin address, or the configuration that names it */
async function explainLive(asked: Asked, where: string, io: Io): Promise<Explanation> {
  const port = await adminPort(where, io)
  const url = `${port.origin}/explain`
  const { status, json } = await askAdmin(port, 'POST', '/explain', asked)
  const { detail } = (json ?? {}) as { detail?: unknown }
  if (status === 422 || status === 400) throw new Unusable(printable(String(detail)))
  if (status === 401) throw new Failure('The admin port asks for its key: set ADMIN_KEY in the environment.')
  if (status !== 200 || !isExplanation(json)) {
    const said = typeof detail === 'string' ? `: ${printable(detail)}` : '.'
    throw new Failure(`What answers on ${url} is not a gateway that explains (${status})${said}`)
  }
  return json
}

function isExplanation(json: unknown): json is Explanation {
  const { request, rules, answer } = (json ?? {}) as Partial<Explanation>
  return typeof request === 'object' && Array.isArray(rules) && typeof answer === 'object'
}

/** From the files alone, with empty counters. */
async function explainOffline(asked: Asked, config: string, io: Io): Promise<Explanation> {
  const loaded = await loadInput(config, io.env)
  const { store: settings } = loaded.config.gateway
  const { store } = await openStore({ ...settings, redis: '' }, quiet, NO_HOOKS)
  const limiters = createLimiters(loaded, toolsOf(loaded.config, quiet))
  const counters = {
    // Hashes made with a temporary secret mean nothing elsewhere, and are not shown.
    questions: new Questions(limiters, randomBytes(32), quiet),
    store,
    now: () => performance.now(),
  }
  try {
    return await explainRequest(asked, { loaded, counters, unknownHosts: new UnknownHosts(), live: false })
  } catch (error) {
    if (!(error instanceof UnknownQuestion)) throw error
    const ids = loaded.config.projects.map(({ id }) => id)
    throw new Unusable(`${error.message}${didYouMean(asked.project ?? '', ids)}`)
  } finally {
    await Promise.all([...limiters.values()].map(limiter => limiter.close?.()))
    await store.close()
    await loaded.compiled.close()
  }
}

const NO_HOOKS = { failed() {}, late() {}, awayChanged() {} }
