/** The settings of gateway.yaml that decide about requests, as fields to compare. */
import type { Gateway } from '../../../config/schema/gateway.js'
import { addressesOf } from '../../../config/schema/upstream.js'
import type { Configuration } from '../../configured/load.js'
import { shownAddress } from '../../decide/redis/address.js'
import { secondsText } from '../settings.js'
import type { FieldValues } from './changes.js'
import { routesOf } from './routes.js'

/**
 * Settings that change nothing about a request, and those that are reported in another form below or beside the limits. All
 * others are compared as they stand, so that a new one is never forgotten.
 */
const APART: ReadonlySet<string> = new Set<keyof Gateway>([
  ...(['version', 'admin', 'observe', 'drain', 'projects', 'policies', 'log', 'tracing'] as const),
  ...(['listen', 'redis', 'upstreams', 'routes', 'retryJitter', 'store'] as const),
])

/** @param other the configuration that it is compared with */
export function settingsOf(
  { config: { gateway, planWords } }: Configuration,
  other: Configuration,
): FieldValues {
  const { listen, redis, retryJitter, store } = gateway
  const { headTimeout, maxConnections, maxConnectionsPerClient, maxEventLoopDelay, tls, workers } = listen
  return {
    ...Object.fromEntries(Object.entries(gateway).filter(([name]) => !APART.has(name))),
    retryJitter: `${retryJitter} %`,
    redis: redis === '' ? 'none' : shownAddress(redis),
    'store instances': store.instances,
    'store deadline': secondsText(store.deadline),
    'listen workers': workers,
    'listen headTimeout': secondsText(headTimeout),
    'listen maxConnections': maxConnections,
    'listen maxConnectionsPerClient': maxConnectionsPerClient,
    'listen maxEventLoopDelay': secondsText(maxEventLoopDelay),
    ...(tls && { 'listen tls minVersion': tls.minVersion, 'listen tls ciphers': tls.ciphers }),
    ...routesOf(gateway),
    ...upstreamsOf(gateway, other.config.gateway),
    ...planWords,
  }
}

/**
 * Where each upstream is; of those that both configurations reach by a URL, also how they read requests, by which they
 * are matched and counted, and what they are given.
 */
function upstreamsOf({ upstreams }: Gateway, other: Gateway): FieldValues {
  const fields = Object.entries(upstreams).flatMap(([name, upstream]) => {
    const counterpart = other.upstreams[name]
    const isIn = counterpart !== undefined && !('embedded' in counterpart)
    const settings = isIn && !('embedded' in upstream) ? externalOf(upstream) : {}
    const address =
      'embedded' in upstream ? [`embedded ${upstream.embedded}`] : addressesOf(upstream).map(addressText)
    return Object.entries({ address, ...settings }).map(
      ([setting, value]) => [`upstream ${name} ${setting}`, value] as const,
    )
  })
  return Object.fromEntries(fields)
}

function addressText({ url, weight }: { url: string; weight: number }): string {
  return weight === 1 ? url : `${url} (weight ${weight})`
}

/** Without `secret`: it tells the upstream who the gateway is, and nothing about a request. */
function externalOf(upstream: Exclude<Gateway['upstreams'][string], { embedded: string }>): FieldValues {
  const {
    protocol,
    ca,
    connections,
    maxBody,
    timeouts,
    pathParameters,
    caseInsensitivePaths,
    methodOverride,
    balance,
    slowStart,
    resolve,
    retries,
  } = upstream
  const times = Object.entries(timeouts).map(([name, ms]) => [`timeouts.${name}`, secondsText(ms)] as const)
  const reading = { pathParameters, caseInsensitivePaths, methodOverride }
  const spreading = {
    balance,
    slowStart: slowStart && secondsText(slowStart),
    resolve: resolve && secondsText(resolve),
    retries: retries && `${retries.attempts} attempts on ${retries.on.join(', ')} within ${retries.budget}%`,
  }
  return { protocol, ca, connections, maxBody, ...spreading, ...reading, ...Object.fromEntries(times) }
}
