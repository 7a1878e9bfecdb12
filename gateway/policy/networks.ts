/** Which addresses lie in a list of networks: a look-up for each prefix length that is written, however many networks there are. */
import { isIPv6 } from 'node:net'

/**
 * @param cidrs addresses, or networks such as `203.0.113.0/24` and `2001:db8::/32`; IPv4-mapped ones stand for IPv4
 * @returns true for an address, as facts tell it, that one of them holds
 */
export function createNetworks(cidrs: readonly string[]): (address: string) => boolean {
  const families = { 4: new Map<number, Set<string>>(), 6: new Map<number, Set<string>>() }
  for (const cidr of cidrs) {
    const [address = '', written] = cidr.split('/')
    const groups = groupsOf(address)
    if (groups === undefined) continue
    const isMapped = groups.length === 2 && address.includes(':')
    const bits = written === undefined ? groups.length * 16 : Number(written) - (isMapped ? 96 : 0)
    const lengths = families[groups.length === 2 ? 4 : 6]
    const prefixes = lengths.get(bits) ?? new Set()
    lengths.set(bits, prefixes.add(prefixOf(groups, bits)))
  }
  return address => {
    const groups = groupsOf(address)
    if (groups === undefined) return false
    const lengths = families[groups.length === 2 ? 4 : 6]
    for (const [bits, prefixes] of lengths) if (prefixes.has(prefixOf(groups, bits))) return true
    return false
  }
}

/** The first bits, as text. */
function prefixOf(groups: readonly number[], bits: number): string {
  const whole = bits >> 4
  let prefix = ''
  for (let i = 0; i < whole; i += 1) prefix += String.fromCharCode(groups[i] as number)
  const rest = bits & 15
  return rest === 0 ? prefix : prefix + String.fromCharCode((groups[whole] as number) >> (16 - rest))
}

/** An address in groups of 16 bits: two of IPv4, eight of IPv6; undefined for what is none. */
function groupsOf(address: string): number[] | undefined {
  if (!address.includes(':')) return groupsOfIPv4(address)
  if (!isIPv6(address)) return undefined
  const [left = [], right] = address
    .split('::')
    .map(half => (half === '' ? [] : half.split(':').flatMap(groupsOfPart)))
  const zeros = Array<number>(right === undefined ? 0 : 8 - left.length - right.length).fill(0)
  const groups = [...left, ...zeros, ...(right ?? [])]
  const isMapped = groups[5] === 0xffff && groups.every((group, i) => i > 4 || group === 0)
  return isMapped ? groups.slice(6) : groups
}

/** `db8`, or the dotted end of an address. */
function groupsOfPart(part: string): number[] {
  return part.includes('.') ? (groupsOfIPv4(part) as number[]) : [Number.parseInt(part, 16)]
}

function groupsOfIPv4(address: string): number[] | undefined {
  const [a, b, c, d, ...rest] = address.split('.').map(Number)
  if (a === undefined || b === undefined || c === undefined || d === undefined) return undefined
  if (rest.length > 0 || Number.isNaN(a + b + c + d)) return undefined
  return [(a << 8) | b, (c << 8) | d]
}
