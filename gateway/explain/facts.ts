/** The facts of a hypothetical request, which identify counters. */
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import type { CounterName } from '../admin/inspect.js'
import type { Configuration } from '../configured/load.js'
import { GatewayError, Unnamed } from '../errors.js'
import { TrustedProxies } from '../listen/client.js'
import { createCredentials } from '../listen/credentials.js'
import { readFacts } from '../listen/facts.js'
import { requestOf } from '../listen/written.js'
import type { Facts } from '../types.js'

/** The parts of a request that a question gives, by name. */
export type Parts = Omit<CounterName, 'rule' | 'project'>

/** @throws {Unnamed} when such a request is impossible */
export function factsOf({ config, compiled }: Configuration, given: Parts): Facts {
  const { method = 'GET', path = '/', ip = '127.0.0.1', ja3, ja4, auth, email, flow } = given
  if (!METHODS.includes(method)) throw new Unnamed(`"${method}" is not a method.`)
  if (isIP(ip) === 0) throw new Unnamed(`"${ip}" is not an IP address.`)
  const query = flow === undefined || flow === '' ? '' : `?${new URLSearchParams({ flow })}`
  const headers = headersOf(given)
  const fields = headers.some(([name]) => name === 'host') ? [] : ['Host', 'localhost']
  if (email !== undefined) fields.push('Content-Type', 'application/x-www-form-urlencoded')
  try {
    const req = requestOf({ method, target: path + query, fields: [...fields, ...headers.flat()], peer: ip })
    const { fingerprintHeaders, credentials } = config.gateway
    const credentialIn = createCredentials(credentials)
    const facts = readFacts(req, { trusted: new TrustedProxies([]), fingerprintHeaders, credentialIn })
    const authenticated = auth === undefined ? facts.authenticated : auth === 'authenticated'
    const asked = changed(facts, { ja3: ja3 || undefined, ja4: ja4 || undefined, authenticated })
    const upstream = compiled.policy.routes.find(facts)?.value
    return upstream === undefined ? asked : compiled.policy.readFor(asked, upstream)
  } catch (error) {
    if (error instanceof GatewayError)
      throw new Unnamed(`The request ${method} ${path} is not possible: ${error.message}`)
    throw error
  }
}

/** The same facts with these replaced. */
export function changed(facts: Facts, changes: Partial<Facts>): Facts {
  const { id, method, path, query, host, client, network, trusted, upgrade, preflight } = facts
  const { ja3, ja4, authenticated } = facts
  const plain = { id, method, path, query, host, client, network, trusted, upgrade, preflight }
  return { ...plain, ja3, ja4, authenticated, header: name => facts.header(name), ...changes }
}

/** Name and value of each header that is given as `name: value`. @throws {Unnamed} */
export function headersOf({ header = [] }: Parts): [string, string][] {
  return header.map(text => {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new Unnamed(`"${text}" is not a header: write name: value.`)
    return [name.toLowerCase(), value.replace(/^[ \t]+/, '')]
  })
}
