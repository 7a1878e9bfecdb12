/** The counter that a hypothetical request would use; the parts of its key are given by name. */

import { METHODS } from 'node:http'
import { parseAddress } from '../../config/words/address.js'
import type { CounterName } from '../admin/inspect.js'
import type { Configuration } from '../configured/load.js'
import { PEEK_BYTES } from '../decide/body-kind.js'
import { callNamed } from '../decide/json-rpc.js'
import type { Question, Questions } from '../decide/question.js'
import { GatewayError, Unnamed } from '../errors.js'
import { readWritten } from '../listen/written.js'
import type { Facts, Project, Rule } from '../types.js'
import type { Outcome } from '../verdict.js'

/** The parts of a request that a question gives, by name. */
export type Parts = Omit<CounterName, 'rule' | 'project'>

/** @throws {Unnamed} when such a request is impossible */
function factsOf({ config, compiled }: Configuration, given: Parts): Facts {
  const { method = 'GET', path = '/', ip = '127.0.0.1', ja3, ja4, auth, email, flow } = given
  if (!METHODS.includes(method)) throw new Unnamed(`"${method}" is not a method.`)
  if (parseAddress(ip) === undefined) throw new Unnamed(`"${ip}" is not an IP address.`)
  const query = flow === undefined || flow === '' ? '' : `?${new URLSearchParams({ flow })}`
  const headers = headersOf(given)
  const fields = headers.some(([name]) => name === 'host') ? [] : ['Host', 'localhost']
  if (email !== undefined) fields.push('Content-Type', 'application/x-www-form-urlencoded')
  const fingerprints = { ...(ja3 && { ja3 }), ...(ja4 && { ja4 }) }
  const authenticated = auth === undefined ? undefined : auth === 'authenticated'
  const all = [...fields, ...headers.flat()]
  const written = { method, target: path + query, fields: all, peer: ip, fingerprints, authenticated }
  try {
    const { facts } = readWritten(written, { ...config.gateway, trustedProxies: [] })
    const upstream = compiled.policy.routes.find(facts)?.value.upstream
    return upstream === undefined ? facts : compiled.policy.readFor(facts, upstream)
  } catch (error) {
    if (error instanceof GatewayError)
      throw new Unnamed(`The request ${method} ${path} is not possible: ${error.message}`)
    throw error
  }
}

/** Name and value of each header that is given as `name: value`. @throws {Unnamed} */
function headersOf({ header = [] }: Parts): [string, string][] {
  return header.map(text => {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new Unnamed(`"${text}" is not a header: write name: value.`)
    return [name.toLowerCase(), value.replace(/^[ \t]+/, '')]
  })
}

/** The names that give each part of a key; headers are compared by their own names. */
const NAMES: Readonly<Record<string, readonly (keyof CounterName)[]>> = {
  project: ['project'],
  path: ['method', 'path'],
  'full-path': ['path'],
  'client-ip': ['ip'],
  method: ['method'],
  ja3: ['ja3'],
  ja4: ['ja4'],
  auth: ['auth'],
  'json-rpc': ['call'],
}

/** What must still be given to identify the rule's counter, in the order of its key. */
export function missingNames({ key }: Rule, given: Partial<CounterName>): string[] {
  const missing = key.flatMap((part): readonly string[] => {
    if (part === 'email-or-flow')
      return given.email === undefined && given.flow === undefined ? ['email or flow'] : []
    const isHeader = part === 'host' || part.startsWith('header:')
    if (!isHeader) return (NAMES[part] ?? []).filter(name => given[name] === undefined)
    const name = part.replace('header:', '')
    return headersOf(given).some(([one]) => one === name) ? [] : [`header (${name}: …)`]
  })
  return [...new Set(missing)]
}

/**
 * The question that such a request puts to the rule's counter; undefined if it has none.
 *
 * @throws {Unnamed} when such a request is impossible, or the rule does not look at its path
 */
export function questionOf(
  rule: Rule,
  {
    given,
    project,
    loaded,
    questions,
  }: { given: Parts; project: Project; loaded: Configuration; questions: Questions },
): Question | Outcome | undefined {
  const facts = factsOf(loaded, given)
  const { policy } = loaded.compiled
  // The counter exists whoever asks, even if the question leaves open what the rule's `when` needs.
  const found = policy.looking(facts).find(one => one.rule === rule)
  if (found === undefined && rule.key.includes('path')) {
    throw new Unnamed(`"${rule.id}" does not look at ${given.method} ${given.path}.`)
  }
  const bodyPrefix =
    given.email === undefined ? undefined : Buffer.from(String(new URLSearchParams({ email: given.email })))
  const calls = given.call === undefined ? undefined : callNamed(given.call)
  const matched = { rule, route: found?.route ?? '/' }
  const question = questions.of(
    matched,
    {
      ...{ facts, project, matched: [matched], calls },
      bodyPrefix: bodyPrefix?.subarray(0, PEEK_BYTES),
      isMessage: rule.countsMessages,
    },
    0,
  )
  return question === 'skip' ? undefined : question
}
