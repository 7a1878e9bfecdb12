import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** All of ::/96: some systems still treat such an address as the IPv4 address it contains. */
const ipv4Compatible = new BlockList()
ipv4Compatible.addSubnet('::', 96, 'ipv6')

/** True for an address of the public internet; private, loopback, link-local and translated ones are not. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  if (isIP(address) === 6 && ipv4Compatible.check(address, 'ipv6')) return false
  return ipaddr.process(address).range() === 'unicast'
}

/** What the operator allows beyond public addresses and https. */
export interface TargetRules {
  /** Also private and loopback addresses, over http too. */
  readonly allowPrivate: boolean
  /** Also http to public addresses. */
  readonly allowHttp: boolean
}

/** The rules that the environment states. Throws an Error with a sentence. */
export const targetRules = (env: NodeJS.ProcessEnv): TargetRules => ({
  allowPrivate: flag('WEBHOOK_ALLOW_PRIVATE', env.WEBHOOK_ALLOW_PRIVATE),
  allowHttp: flag('WEBHOOK_ALLOW_HTTP', env.WEBHOOK_ALLOW_HTTP),
})

function flag(name: string, text: string | undefined): boolean {
  if (text === undefined || text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new Error(`${name} must be true or false`)
}

/**
 * Refused ports from 1024 on: the "bad ports" of the Fetch standard, and those of databases and of Docker, which may
 * mistake an HTTP request for one of their own. Below 1024 only 80 and 443 are allowed.
 */
const badPorts = new Set([
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
  ...[2375, 2376, 3306, 5432, 6379, 9200, 11211, 27017],
])
const isBadPort = (port: number): boolean => (port < 1024 ? port !== 80 && port !== 443 : badPorts.has(port))

const refusal = (host: string): string =>
  `${host} is not a public address; WEBHOOK_ALLOW_PRIVATE=true allows it`
const noHttp = 'http is not encrypted: use https; WEBHOOK_ALLOW_HTTP=true allows http'

/** True for names that always mean this host (RFC 6761 section 6.3). */
const isLocalName = (host: string): boolean => /^(?:.*\.)?localhost\.?$/i.test(host)

/** Why a webhook's address is refused, or undefined. Host names are checked again when they are resolved. */
export function refusedTarget(url: URL, { allowPrivate, allowHttp }: TargetRules): string | undefined {
  const isHttp = url.protocol === 'http:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isPublic = isLocalName(host) ? false : isIP(host) === 0 ? undefined : isPublicAddress(host)
  if (isPublic === false && !allowPrivate) return refusal(host)
  if (isHttp && !allowHttp && (!allowPrivate || isPublic)) return noHttp
  if (url.port !== '' && isBadPort(Number(url.port))) {
    return `port ${url.port} is not allowed; docs/webhooks.md lists the refused ports`
  }
  return undefined
}

/**
 * Resolves a name for a connection and refuses it when `judge` rejects any of its addresses. The connection is made to
 * the addresses that were checked, so a second DNS response cannot slip in.
 */
export const checked =
  (resolve: ResolveHost, judge: (hostname: string, address: string) => string | undefined): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), '', 0)
      const [refused] = addresses.flatMap(({ address }) => judge(hostname, address) ?? [])
      if (refused) return callback(new Error(refused), '', 0)
      if (options.all) return callback(null, addresses)
      return callback(null, first.address, first.family)
    })
  }

export type ResolveHost = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Refuses names that resolve to an address that is not public. */
export const publicOnly = (resolve: ResolveHost): LookupFunction =>
  checked(resolve, (hostname, address) => (isPublicAddress(address) ? undefined : refusal(hostname)))

/** The name resolution for a scheme under these rules. */
export function lookupFor(
  protocol: 'http:' | 'https:',
  { allowPrivate, allowHttp }: TargetRules,
  resolve: ResolveHost = lookup,
): LookupFunction {
  if (!allowPrivate) return publicOnly(resolve)
  const isPrivateOnly = protocol === 'http:' && !allowHttp
  return checked(resolve, (_, address) => (isPrivateOnly && isPublicAddress(address) ? noHttp : undefined))
}
