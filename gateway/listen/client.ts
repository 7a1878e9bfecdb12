import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** The addresses of proxies whose forwarded and fingerprint headers count (`trustedProxies`). */
export class TrustedProxies {
  readonly #ranges: [Address, number][]

  /** Takes CIDRs such as `10.0.0.0/8` or `fd00::/8`, or single addresses; throws on anything else. */
  constructor(cidrs: readonly string[]) {
    this.#ranges = cidrs.map(parseRange)
  }

  has(address: Address): boolean {
    for (const [network, bits] of this.#ranges) {
      if (network.kind() === address.kind() && address.match(network, bits)) return true
    }
    return false
  }

  get empty(): boolean {
    return this.#ranges.length === 0
  }
}

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
  let address = parseAddress(peer)
  if (address === undefined || !trusted.has(address)) return { address: fold(peer), trusted: false }
  const hops = forwardedFor === undefined ? [] : forwardedFor.split(',')
  for (let i = hops.length - 1; i >= 0 && trusted.has(address); i--) {
    const hop = parseAddress(hops[i] as string)
    if (hop === undefined) break
    address = hop
  }
  return { address: text(address), trusted: true }
}

/** What an address is counted by: an IPv4 address itself, an IPv6 address by its /64 (usually one customer). */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const parsed = parseAddress(address)
  if (!(parsed instanceof ipaddr.IPv6)) return address
  return `${text(new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0]))}/64`
}

/** The client that a connection from `address` counts for; undefined for a trusted proxy, which has many clients. */
export function clientBehind(address: string, proxies: TrustedProxies): string | undefined {
  const peer = clientAddress(address, undefined, proxies)
  return peer.trusted ? undefined : networkOf(peer.address)
}

function parseRange(cidr: string): [Address, number] {
  const [network = '', bits, ...rest] = cidr.split('/')
  const address = parseAddress(network)
  // The prefix length of an IPv4-mapped network includes the 96 bits before the IPv4 address.
  const mapped = address?.kind() === 'ipv4' && network.includes(':') ? 96 : 0
  const widest = address?.kind() === 'ipv4' ? 32 : 128
  const length = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) - mapped : Number.NaN
  if (address === undefined || rest.length > 0 || !(length >= 0 && length <= widest)) {
    throw new Error(`'${cidr}' is not a CIDR. Write it like 10.0.0.0/8 or fd00::/8.`)
  }
  return [address, length]
}

/** Parses one address in any usual spelling: padded with blanks, with a port, in brackets, IPv4-mapped. */
function parseAddress(spelling: string): Address | undefined {
  let host = spelling.trim()
  if (host[0] === '[') host = /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1] ?? ''
  else if (host.includes('.')) host = host.replace(/^([\d.]+):\d+$/, '$1')
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return ipaddr.IPv4.parse(host)
  if (!host.includes(':') || !ipaddr.IPv6.isValid(host)) return undefined
  // ipaddr.js reads `::a.b.c.d`, an IPv6 address (RFC 4291 section 2.5.5.1), as the IPv4-mapped `::ffff:a.b.c.d`.
  const address = ipaddr.IPv6.parse(/^::\d+\./.test(host) ? `0${host}` : host)
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

/** Normalizes an address reported by a socket. IPv4 needs no parsing, as it has only one spelling. */
function fold(peer: string): string {
  if (!peer.includes(':')) return peer
  const address = parseAddress(peer)
  return address === undefined ? peer : text(address)
}

function text(address: Address): string {
  if (address instanceof ipaddr.IPv4) return address.toString()
  return new ipaddr.IPv6(address.parts).toRFC5952String()
}
