/** Traefik's services: their addresses, weights, health checks and timeouts. */
import type { Migration } from './migration.js'
import { secondsOf } from './traefik-middlewares.js'
import { LONGEST_TIMEOUT_MS, type WeightedAddress } from './upstreams.js'
import type { Section } from './yaml.js'

/** The name without the provider of these files: `limit@file` is `limit`. What others provide is not in the files. */
export const plain = (name: string): string => name.replace(/(?<=.)@file$/, '')

/** Where a service leads. */
export interface ServiceTarget {
  readonly upstream: string
  /** The path that it puts before those of requests. */
  readonly base: string
}

/** Adds the upstreams of all services that have addresses. */
export const servicesOf = (http: Section, into: Migration): [name: string, target: ServiceTarget][] =>
  http
    .section('services')
    .members()
    .flatMap(([name, service]) => {
      const target = serviceOf(name, service, http, into)
      return target === undefined ? [] : [[name, target]]
    })

/** Adds the upstream of a service, and reports what of it has no counterpart. */
function serviceOf(
  name: string,
  service: Section,
  http: Section,
  into: Migration,
): ServiceTarget | undefined {
  service.others(
    ['loadBalancer', 'weighted'],
    into,
    'An upstream has only addresses, which share the requests.',
  )
  const parts = service.section('weighted').list('services')
  const inner = parts.map(one => ({
    balancer: http
      .section('services')
      .section(plain(one.text('name') ?? ''))
      .section('loadBalancer'),
    share: one.number('weight') ?? 1,
  }))
  const own = { balancer: service.section('loadBalancer'), share: 1 }
  for (const { balancer } of inner) balancer.others(['servers'], into, 'A weighted service is one upstream.')
  const balancers = parts.length === 0 ? [own] : inner
  if (balancers.some(({ balancer }) => balancer.list('servers').length === 0)) return undefined
  const bases = new Set(balancers.flatMap(({ balancer }) => balancer.list('servers').map(basePathOf)))
  const [base = ''] = bases
  if (bases.size > 1) {
    into.leftOut(service.at(), `the service "${name}", whose addresses have different paths.`)
    return undefined
  }
  const upstream = into.upstreams.add(name, addressesOf(balancers), service.at())
  if (upstream === undefined) return undefined
  if (parts.length === 0) readSettings(upstream, own.balancer, http, into)
  return { upstream, base }
}

/** Reads what a service says besides its addresses. */
function readSettings(upstream: string, balancer: Section, http: Section, into: Migration): void {
  const addresses = 'An upstream has addresses that share the requests.'
  balancer.others(BALANCER, into, addresses)
  if (balancer.node.passHostHeader === false)
    into.leftOut(balancer.at('passHostHeader'), 'another Host: it is passed on.')
  for (const one of balancer.list('servers'))
    one.others(['url', 'weight', 'preservePath'], into, 'The addresses of an upstream share the requests.')
  const transport = transportOf(balancer, http)
  if (transport !== undefined) {
    transport.others(['forwardingTimeouts'], into, 'The import does not read it.')
    const waits = transport.section('forwardingTimeouts')
    waits.others(['dialTimeout', 'responseHeaderTimeout'], into, 'The import does not read it.')
    const [connect, head] = [waits.text('dialTimeout'), waits.text('responseHeaderTimeout')].map(
      millisecondsOf,
    )
    const timeouts = { ...(connect !== undefined && { connect }), ...(head !== undefined && { head }) }
    into.upstreams.set(upstream, { timeouts })
  }
  if (!('healthCheck' in balancer.node)) return
  const check = balancer.section('healthCheck')
  check.others(['path', 'interval', 'timeout'], into, 'A health check has no counterpart of it.')
  const at = check.at()
  const every = millisecondsOf(check.text('interval')) ?? 30_000
  const timeout = millisecondsOf(check.text('timeout')) ?? 5000
  const health = { path: check.text('path') ?? '/', every, timeout, healthy: 1, unhealthy: 1 }
  into.upstreams.check(upstream, health, at)
  into.changedOnce(at, 'a health check passes with 2xx alone, in Traefik also with 3xx.')
}

function transportOf(balancer: Section, http: Section): Section | undefined {
  const name = plain(balancer.text('serversTransport') ?? '')
  const known = http.section('serversTransports')
  return Object.hasOwn(known.node, name) ? known.section(name) : undefined
}

const BALANCER = ['servers', 'passHostHeader', 'healthCheck', 'serversTransport']

const millisecondsOf = (text = ''): number | undefined => {
  const ms = Math.round((secondsOf(text) ?? 0) * 1000)
  return ms > 0 && ms <= LONGEST_TIMEOUT_MS ? ms : undefined
}

/** The addresses of services with whole weights, so that those of each service together get its share. */
function addressesOf(
  services: readonly { readonly balancer: Section; readonly share: number }[],
): WeightedAddress[] {
  const weighted = services.map(({ balancer, share }) => {
    const weights = balancer.list('servers').map(one => [one, one.number('weight') ?? 1] as const)
    return { share, weights, sum: weights.reduce((sum, [, weight]) => sum + weight, 0) }
  })
  const product = weighted.reduce((total, { sum }) => total * sum, 1)
  return weighted.flatMap(({ share, weights, sum }) =>
    weights.map(([one, weight]) => ({ url: urlOf(one), weight: (share * weight * product) / sum })),
  )
}

/** Traefik passes over the path of an address, unless `preservePath` is set: then it is put before those of requests. */
function basePathOf(server: Section): string {
  const url = server.text('url') ?? ''
  const isKept = server.node.preservePath === true && URL.canParse(url)
  return isKept ? new URL(url).pathname.replace(/\/$/, '') : ''
}

function urlOf(server: Section): string {
  const url = server.text('url') ?? ''
  return basePathOf(server) === '' ? url : new URL('/', url).href
}
