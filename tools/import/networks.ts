/** Which addresses a list of `allow` and `deny` refuses, as networks. The first line that names an address decides. */
import { networkText, parseNetwork } from '../../config/words/address.js'

export interface AddressLine {
  readonly allow: boolean
  /** An address, a network, or `all`. */
  readonly network: string
}

type Range = readonly [bigint, bigint]
const FAMILIES = [1, 4]
const MOST_RANGES = 1000

/** The refused networks; undefined when a line cannot be read, or they would be too many. */
export function deniedNetworks(lines: readonly AddressLine[]): string[] | undefined {
  const denied: string[] = []
  for (const words of FAMILIES) {
    const bits = words * 32
    let open: Range[] = [[0n, (1n << BigInt(bits)) - 1n]]
    const refused: Range[] = []
    for (const { allow, network } of lines) {
      const range =
        network === 'all' ? open[0] && ([0n, (1n << BigInt(bits)) - 1n] as const) : rangeOf(network, words)
      if (range === undefined && network !== 'all' && parseNetwork(network) === undefined) return undefined
      if (range === undefined) continue
      const left: Range[] = []
      for (const one of open) {
        const low = one[0] > range[0] ? one[0] : range[0]
        const high = one[1] < range[1] ? one[1] : range[1]
        if (low > high) {
          left.push(one)
          continue
        }
        if (!allow) refused.push([low, high])
        if (one[0] < low) left.push([one[0], low - 1n])
        if (high < one[1]) left.push([high + 1n, one[1]])
      }
      open = left
      if (open.length + refused.length > MOST_RANGES) return undefined
    }
    denied.push(...refused.flatMap(range => networksOf(range, bits)))
  }
  return denied.length > MOST_RANGES ? undefined : denied
}

function rangeOf(text: string, words: number): Range | undefined {
  const network = parseNetwork(text)
  if (network === undefined || network.words.length !== words) return undefined
  const size = 1n << BigInt(words * 32 - network.bits)
  const address = network.words.reduce((sum, word) => (sum << 32n) + BigInt(word), 0n)
  const low = address - (address % size)
  return [low, low + size - 1n]
}

/** The fewest networks that make up a range. */
function networksOf([from, to]: Range, bits: number): string[] {
  const networks: string[] = []
  for (let low = from; low <= to; ) {
    let prefix = bits
    while (prefix > 0) {
      const size = 1n << BigInt(bits - prefix + 1)
      if (low % size !== 0n || low + size - 1n > to) break
      prefix -= 1
    }
    const words = Array.from({ length: bits / 32 }, (_, i) =>
      Number((low >> BigInt(bits - 32 * (i + 1))) & 0xffffffffn),
    )
    networks.push(networkText({ words, bits: prefix }))
    low += 1n << BigInt(bits - prefix)
  }
  return networks
}
