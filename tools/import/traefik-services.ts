/** Traefik's services as upstreams. */
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const ROUND_ROBIN = 'The addresses of an upstream share the requests.'

/** Adds the upstream of a service to `services`, and reports what of it has no counterpart. */
export function readService(
  name: string,
  service: Section,
  into: Migration,
  services: Map<string, string>,
): void {
  service.others(['loadBalancer'], into, 'An upstream has only addresses, which share the requests.')
  const balancer = service.section('loadBalancer')
  balancer.others(['servers', 'passHostHeader'], into, 'An upstream has addresses that share the requests.')
  if (balancer.node.passHostHeader === false)
    into.leftOut(balancer.at('passHostHeader'), 'another Host: it is passed on.')
  const urls = balancer.list('servers').map(server => {
    server.others(['url', 'preservePath'], into, ROUND_ROBIN)
    return server.text('url') ?? ''
  })
  const kept = balancer.list('servers').find(server => server.node.preservePath === true && hasPath(server))
  if (kept !== undefined) {
    into.leftOut(
      kept.at(),
      `the service "${name}". It gets no paths but those below that of its address, and paths are not rewritten here.`,
    )
    return
  }
  const upstream = urls.length === 0 ? undefined : into.upstreams.add(name, urls, service.at())
  if (upstream !== undefined) services.set(name, upstream)
}

/** Traefik passes over the path of an address, unless it is told to keep it. */
function hasPath(server: Section): boolean {
  const url = server.text('url') ?? ''
  return URL.canParse(url) && new URL(url).pathname !== '/'
}
