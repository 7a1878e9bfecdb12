/** What the configuration says about upstreams, as those who forward requests need it. */
import { ConfigFiles } from '../../config/files.js'
import { addressesOf } from '../../config/schema/upstream.js'
import type { Configuration } from '../configured/load.js'
import type { UpstreamSettings } from '../forward/transport.js'
import { callerFields } from './caller-fields.js'
import type { EmbeddedService } from './upstreams.js'

const EMBEDDED_TIMEOUTS = { connectMs: 2000, headMs: 30_000, idleMs: 60_000, upgradeIdleMs: 3_600_000 }

/** The settings of every upstream; `serviceOf` returns an embedded service by its name. */
export function upstreamSettings(
  { config, contents }: Pick<Configuration, 'config' | 'contents'>,
  serviceOf: (name: string) => EmbeddedService,
): UpstreamSettings[] {
  const { upstreams, fingerprintHeaders } = config.gateway
  // Not from the disk: a worker may start when a file is gone.
  const files = new ConfigFiles(contents)
  const { proxyHeaders, countedHeaders } = callerFields(config)
  const headers = { fingerprintHeaders, proxyHeaders, countedHeaders }
  return Object.entries(upstreams).map(([name, written]): UpstreamSettings => {
    if ('embedded' in written) {
      const { url, secret } = serviceOf(written.embedded)
      return {
        name,
        urls: [url],

        timeouts: EMBEDDED_TIMEOUTS,
        service: { secret },
        ...headers,
      }
    }
    const { ca, protocol, health, retries, connections, maxBody, methodOverride, timeouts, secret } = written
    return {
      name,
      urls: addressesOf(written),
      resolveMs: written.resolve,
      balance: written.balance,
      slowStartMs: written.slowStart,
      ca: ca === undefined ? undefined : authorityIn(files, ca),
      protocol,
      health: health && {
        path: health.path,
        everyMs: health.every,
        timeoutMs: health.timeout,
        healthy: health.healthy,
        unhealthy: health.unhealthy,
      },
      retries,
      connections,
      maxBody,
      methodOverride,
      timeouts: timeoutsOf(timeouts),
      // How a service knows this gateway.
      service: secret === undefined ? undefined : { secret },
      ...headers,
    }
  })
}

function authorityIn(files: ConfigFiles, file: string): string {
  const content = files.text(file)
  if ('fault' in content) throw new Error(`${file}: ${content.fault}`)
  return content.text
}

function timeoutsOf({
  connect,
  head,
  idle,
  upgradeIdle,
}: Record<'connect' | 'head' | 'idle' | 'upgradeIdle', number>) {
  return { connectMs: connect, headMs: head, idleMs: idle, upgradeIdleMs: upgradeIdle }
}
