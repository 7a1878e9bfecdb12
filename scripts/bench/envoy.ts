/** Envoy with two local rate limits and one worker. Both count for the whole route, which is cheaper than per host. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { certificate, type PeerSettings } from './configs.js'

const TYPES = 'type.googleapis.com/envoy.extensions'

/** Writes Envoy's configuration as JSON, which Envoy also reads. */
export function envoyConfig(
  folder: string,
  { port, upstreamPort, limits, tls = false }: PeerSettings,
): string {
  const [second, minute] = limits === 'tight' ? [1, 1] : [1_000_000, 60_000_000]
  const manager = {
    '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'in',
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'app' } }] },
      ],
    },
    http_filters: [
      limit('second', second, '1s'),
      limit('minute', minute, '60s'),
      filter('router', `${TYPES}.filters.http.router.v3.Router`),
    ],
  }
  const config = {
    static_resources: {
      listeners: [
        {
          address: address(port),
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
              ...(tls && { transport_socket: secured(folder) }),
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'app',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'app',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstreamPort) } }] }],
          },
        },
      ],
    },
  }
  const file = join(folder, 'envoy.json')
  writeFileSync(file, JSON.stringify(config))
  return file
}

function secured(folder: string) {
  const { cert, key } = certificate(folder)
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': `${TYPES}.transport_sockets.tls.v3.DownstreamTlsContext`,
      common_tls_context: {
        alpn_protocols: ['h2', 'http/1.1'],
        tls_certificates: [{ certificate_chain: { filename: cert }, private_key: { filename: key } }],
      },
    },
  }
}

function limit(name: string, tokens: number, interval: string) {
  const always = { default_value: { numerator: 100, denominator: 'HUNDRED' } }
  return filter('local_ratelimit', `${TYPES}.filters.http.local_ratelimit.v3.LocalRateLimit`, {
    stat_prefix: name,
    token_bucket: { max_tokens: tokens, tokens_per_fill: tokens, fill_interval: interval },
    filter_enabled: always,
    filter_enforced: always,
    enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
  })
}

function filter(name: string, type: string, settings = {}) {
  return { name: `envoy.filters.http.${name}`, typed_config: { '@type': type, ...settings } }
}

function address(port: number) {
  return { socket_address: { address: '127.0.0.1', port_value: port } }
}
