/** Who sent a request: the client's address, as far as trusted hops vouch for it. */
import {
  countedNetwork,
  type Network,
  networkText,
  parseAddress,
  parseNetwork,
} from '../../config/words/address.js'
import { PrefixTree } from '../../config/words/networks.js'

/** The addresses of proxies whose forwarded and fingerprint headers count (`trustedProxies`). */
export class TrustedProxies {
  readonly #networks = new PrefixTree<true>(() => 0)
  readonly empty: boolean

  /** Takes CIDRs such as `10.0.0.0/8` or `fd00::/8`, or single addresses; throws on anything else. */
  constructor(cidrs: readonly string[]) {
    this.empty = cidrs.length === 0
    for (const cidr of cidrs) {
      const network = parseNetwork(cidr)
      if (network === undefined) {
        throw new Error(`'${cidr}' is not a CIDR. Write it like 10.0.0.0/8 or fd00::/8.`)
      }
      this.#networks.add(network, true)
    }
  }

  has(address: Network): boolean {
    return this.#networks.find(address, ANY) !== undefined
  }
}

const ANY = () => true

/** Who sent a request, as far as trusted hops vouch for it. */
export interface Client {
  /** Text form of the address: IPv4, or IPv6 as in RFC 5952. */
  readonly address: string
  /** True when the TCP peer itself is a trusted proxy. */
  readonly trusted: boolean
}

/**
 * The client's address: the TCP peer, or, behind trusted proxies, the first hop from the right of
 * X-Forwarded-For that is not one of them. An unreadable hop ends the walk at the last good address.
 * `forwardedFor` is the field's lines joined by commas. IPv4-mapped addresses are folded to IPv4.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: TrustedProxies,
): Client {
  if (trusted.empty) return { address: fold(peer), trusted: false }
  let address = parseHop(peer)
  if (address === undefined || !trusted.has(address)) return { address: fold(peer), trusted: false }
  const hops = forwardedFor === undefined ? [] : forwardedFor.split(',')
  for (let i = hops.length - 1; i >= 0 && trusted.has(address); i--) {
    const hop = parseHop(hops[i] as string)
    if (hop === undefined) break
    address = hop
  }
  return { address: networkText(address), trusted: true }
}

/** What an address is counted by: an IPv4 address itself, an IPv6 address by its /64. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const parsed = parseHop(address)
  return parsed === undefined || parsed.words.length === 1 ? address : networkText(countedNetwork(parsed))
}

/** The client that a connection from `address` counts for; undefined for a trusted proxy, which has many clients. */
export function clientBehind(address: string, proxies: TrustedProxies): string | undefined {
  const peer = clientAddress(address, undefined, proxies)
  return peer.trusted ? undefined : networkOf(peer.address)
}

/** Reads one hop in any usual spelling: padded with blanks, with a port, in brackets, with a zone. */
function parseHop(spelling: string): Network | undefined {
  let host = spelling.trim()
  if (host[0] === '[') host = /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1] ?? ''
  else if (host.includes('.')) host = host.replace(/^([\d.]+):\d+$/, '$1')
  const zone = host.indexOf('%')
  if (zone > 0 && host.includes(':') && /^[0-9a-z]+$/i.test(host.slice(zone + 1))) host = host.slice(0, zone)
  return parseAddress(host)
}

/** Normalizes an address reported by a socket. IPv4 needs no parsing, as it has only one spelling. */
function fold(peer: string): string {
  if (!peer.includes(':')) return peer
  const address = parseHop(peer)
  return address === undefined ? peer : networkText(address)
}
