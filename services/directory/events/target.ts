import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The whole of ::/96: an IPv4 address in a form that some systems still take for that address. */
const ipv4Compatible = new BlockList()
ipv4Compatible.addSubnet('::', 96, 'ipv6')

/** True for an address of the public internet; private, loopback, link-local and translated ones are not. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  if (isIP(address) === 6 && ipv4Compatible.check(address, 'ipv6')) return false
  return ipaddr.process(address).range() === 'unicast'
}

/** Why a webhook URL's literal address must not be called, or undefined. Names are judged when they are resolved. */
export function refusedHost(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return isIP(host) !== 0 && !isPublicAddress(host) ? refusal(host) : undefined
}

const refusal = (host: string): string =>
  `${host} is not a public address; WEBHOOK_ALLOW_PRIVATE=true allows it`

/**
 * Resolves a name for a connection and refuses it when any of its addresses is not public. The connection is made to the
 * very addresses that were checked, so a second answer of the name server cannot slip in.
 */
export const publicOnly =
  (resolve: Resolve): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), '', 0)
      const inside = addresses.find(({ address }) => !isPublicAddress(address))
      if (inside) return callback(new Error(refusal(hostname)), '', 0)
      if (options.all) return callback(null, addresses)
      return callback(null, first.address, first.family)
    })
  }

type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** By the system's resolver. */
export const publicLookup = publicOnly(lookup)
