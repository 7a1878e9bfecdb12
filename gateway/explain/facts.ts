/** The facts of a hypothetical request, which identify counters. */
import { METHODS } from 'node:http'
import { parseAddress } from '../../config/words/address.js'
import type { CounterName } from '../admin/inspect.js'
import type { Configuration } from '../configured/load.js'
import { GatewayError, Unnamed } from '../errors.js'
import { readWritten } from '../listen/written.js'
import type { Facts } from '../types.js'

/** The parts of a request that a question gives, by name. */
export type Parts = Omit<CounterName, 'rule' | 'project'>

/** @throws {Unnamed} when such a request is impossible */
export function factsOf({ config, compiled }: Configuration, given: Parts): Facts {
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
export function headersOf({ header = [] }: Parts): [string, string][] {
  return header.map(text => {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new Unnamed(`"${text}" is not a header: write name: value.`)
    return [name.toLowerCase(), value.replace(/^[ \t]+/, '')]
  })
}
