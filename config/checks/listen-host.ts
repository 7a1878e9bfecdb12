/** The hosts of listeners, which of them are one address, and whether both ports can be opened as set. Pure. */
import { isIP, isIPv4 } from 'node:net'
import type { FileFault, Readable } from '../types.js'

const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.])?$/i

/** An IP address or a host name, by itself: no port, no brackets, no scheme. */
export function isListenHost(text: string): boolean {
  return isIP(text) !== 0 || (HOST_NAME.test(text) && URL.canParse(`http://${text}`))
}

/** The host in `http://127.0.0.1`, `127.0.0.1:8080` or `[::1]`; undefined if it cannot be guessed. */
export function hostMeantBy(text: string): string | undefined {
  const bare = text.trim().replace(/^[a-z]+:\/\//i, '')
  const meant = /^\[([^\]]+)\](?::\d+)?$/.exec(bare)?.[1] ?? bare.replace(/:\d*$/, '')
  return isListenHost(meant) ? meant : undefined
}

/** The same text for each way to write an address: 127.1, ::ffff:127.0.0.1 and LOCALHOST are 127.0.0.1. */
function normalHost(host: string): string {
  const url = `http://${isIP(host) === 6 ? `[${host}]` : host}`
  // Without a canonical form: an IPv6 address with a zone.
  if (!URL.canParse(url)) return host.toLowerCase()
  const normal = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (normal === 'localhost') return '127.0.0.1'
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(normal) ?? []
  if (high === undefined || low === undefined) return normal
  return [high, low]
    .flatMap(word => [Number.parseInt(word, 16) >> 8, Number.parseInt(word, 16) & 255])
    .join('.')
}

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  const normal = normalHost(host)
  return normal === '::1' || (isIPv4(normal) && normal.startsWith('127.'))
}

/** True if one port cannot be opened at both; an unspecified address includes all others of its family. */
export function isSameAddress(one: string, other: string): boolean {
  const [a, b] = [normalHost(one), normalHost(other)]
  return a === b || holds(a, b) || holds(b, a)
}

/** A socket on :: takes IPv4 too. */
function holds(a: string, b: string): boolean {
  return a === '::' || (a === '0.0.0.0' && !b.includes(':'))
}

/** True if a connection to `target` on this machine comes to a listener on `host`, at the same port. */
export function reaches(target: string, host: string): boolean {
  const [to, at] = [normalHost(target), normalHost(host)]
  if (to === at) return true
  const isUnspecified = at === '0.0.0.0' || at === '::'
  // A connection to an unspecified address goes to loopback, and localhost may be either.
  if (to === '0.0.0.0' || to === '::' || /^localhost$/i.test(target)) return isUnspecified || isLoopback(at)
  return isLoopback(to) && (at === '::' || (at === '0.0.0.0' && to !== '::1'))
}

export function checkListeners(read: Readable): FileFault[] {
  return [
    ...checkAdmin(read),
    ...checkPorts(read),
    ...checkRedirect(read),
    ...checkWorkers(read),
    ...checkProxyProtocol(read),
  ]
}

/** The admin port must not be open to a network without a key. */
function checkAdmin({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.admin.key !== '' || isLoopback(gateway.admin.host)) return []
  const message = `The admin port on ${gateway.admin.host} needs a key: set admin.key, such as "\${ADMIN_KEY:-}" with ADMIN_KEY or ADMIN_KEY_FILE in the environment, or listen on 127.0.0.1.`
  return [{ file, path: ['admin', 'host'], message }]
}

/** Both ports cannot be opened at one address. */
function checkPorts({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.listen.port === 0) return []
  const { listen, admin } = gateway
  if (listen.port !== admin.port || !isSameAddress(listen.host, admin.host)) return []
  const message = `Port ${admin.port} is also that of listen.port on ${listen.host}: the two must differ.`
  return [{ file, path: ['admin', 'port'], message }]
}

/** A third port, which only leads to the first where that speaks TLS. */
function checkRedirect({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway?.listen.redirectHttp === undefined) return []
  const { listen, admin } = gateway
  const fault = (message: string) => [{ file, path: ['listen', 'redirectHttp'], message }]
  if (listen.tls === undefined)
    return fault('Without "listen.tls" there is no https:// to redirect to: set that, or leave this out.')
  if (listen.redirectHttp === listen.port)
    return fault(`Port ${listen.port} is also that of listen.port: the two must differ.`)
  if (listen.redirectHttp === admin.port && isSameAddress(listen.host, admin.host))
    return fault(`Port ${admin.port} is also that of admin.port on ${admin.host}: the two must differ.`)
  return []
}

/** Anybody could name any client, if everybody were believed. */
function checkProxyProtocol({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || !gateway.listen.proxyProtocol || gateway.trustedProxies.length > 0) return []
  const message =
    'The PROXY protocol is only believed of "trustedProxies": list the addresses of the balancers there.'
  return [{ file, path: ['listen', 'proxyProtocol'], message }]
}

/** Also for `auto` on one core: a file must not be valid on one machine and invalid on another. */
function checkWorkers({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.listen.workers === 1 || gateway.redis !== '') return []
  const message = `Several workers need Redis, where they count together: set redis, such as "\${REDIS_URL:-}" with REDIS_URL in the environment, or write workers: 1.`
  return [{ file, path: ['listen', 'workers'], message }]
}
