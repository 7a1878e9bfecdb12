/** The facts of a request that nobody makes: counters are named by them. */
import { isIP } from 'node:net'
import { type CounterName, Unnamed } from '../admin/inspect.js'
import { GatewayError } from '../errors.js'
import { TrustedProxies } from '../listen/client.js'
import { readFacts } from '../listen/facts.js'
import { requestOf } from '../listen/written.js'
import type { Loaded } from '../run/load.js'
import type { Facts } from '../types.js'

/** @throws {Unnamed} when there could be no such request */
export function factsOf(
  { config, compiled }: Loaded,
  { method = 'GET', path = '/', ip = '127.0.0.1' }: Omit<CounterName, 'rule'>,
): Facts {
  if (isIP(ip) === 0) throw new Unnamed(`"${ip}" is no IP address.`)
  try {
    const req = requestOf({ method, target: path, fields: ['Host', 'localhost'], peer: ip })
    const { fingerprintHeaders } = config.gateway
    const facts = readFacts(req, { trusted: new TrustedProxies([]), fingerprintHeaders })
    const upstream = compiled.routes.find(facts.method, facts.path)?.value
    return upstream === undefined ? facts : compiled.readFor(facts, upstream)
  } catch (error) {
    if (error instanceof GatewayError)
      throw new Unnamed(`There can be no request ${method} ${path}: ${error.message}`)
    throw error
  }
}
