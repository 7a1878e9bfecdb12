/** Where Redis is: one server, a Cluster, or a master that is found through Sentinels. */

interface Node {
  readonly host: string
  readonly port: number
}

interface Access {
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
}

export type RedisAddress =
  | { readonly kind: 'server'; readonly url: string }
  | ({ readonly kind: 'cluster'; readonly nodes: Node[] } & Access)
  | ({ readonly kind: 'sentinel'; readonly sentinels: Node[]; readonly master: string } & Access)

const MANY =
  /^redis(?<tls>s?)\+(?<kind>cluster|sentinel):\/\/(?:(?<user>[^@]*)@)?(?<nodes>[^/]+)(?:\/(?<path>.*))?$/
const PORTS = { cluster: 6379, sentinel: 26379 }

/**
 * Reads `redis://host:6379/0`, `redis+cluster://host:6379,…` and `redis+sentinel://host:26379,…/master`; with TLS,
 * `rediss` instead of `redis`. User and password come before the first host, percent-encoded.
 */
export function redisAddress(url: string): RedisAddress {
  const { tls, kind, user = '', nodes = '', path = '' } = MANY.exec(url)?.groups ?? {}
  if (kind !== 'cluster' && kind !== 'sentinel') return { kind: 'server', url }
  const colon = user.indexOf(':')
  const access: Access = {
    tls: tls === 's',
    username: decoded(colon < 0 ? user : user.slice(0, colon)),
    password: decoded(colon < 0 ? '' : user.slice(colon + 1)),
  }
  const hosts = nodes.split(',').map(node => nodeOf(node, PORTS[kind]))
  return kind === 'cluster'
    ? { kind, nodes: hosts, ...access }
    : { kind, sentinels: hosts, master: decodeURIComponent(path), ...access }
}

/** The address without user, password and options, for people and logs. */
export function shownAddress(url: string): string {
  const slashes = url.indexOf('//')
  const host = Math.max(slashes + 2, url.lastIndexOf('@') + 1)
  const shown = slashes < 0 ? url : `${url.slice(0, slashes)}//${url.slice(host)}`
  return shown.replace(/[?#].*/s, '')
}

function decoded(text: string): string | undefined {
  return text === '' ? undefined : decodeURIComponent(text)
}

function nodeOf(text: string, standardPort: number): Node {
  const { hostname, port } = new URL(`redis://${text}`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? standardPort : Number(port) }
}
