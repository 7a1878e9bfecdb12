/** IP addresses and networks as the 32-bit words they are looked up by. Pure. */

/** The first `bits` of an address: one word of IPv4, four of IPv6. An address is a network of all its bits. */
export interface Network {
  readonly words: readonly number[]
  readonly bits: number
}

const WORD = 32

/**
 * Reads `203.0.113.0/24`, `2001:db8::/32` or an address; IPv4-mapped ones are folded to IPv4. Bits behind the prefix stay.
 *
 * @returns undefined for what is neither
 */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const words = address.includes(':') ? wordsOfV6(address) : wordsOfV4(address)
  if (words === undefined) return undefined
  const all = words.length * WORD
  const bits = slash < 0 ? all : Number(text.slice(slash + 1))
  if (!(bits >= 0 && bits <= all)) return undefined
  const isMapped = all === 128 && bits >= 96 && words[0] === 0 && words[1] === 0 && words[2] === 0xffff
  return isMapped ? { words: words.slice(3), bits: bits - 96 } : { words, bits }
}

/** The network with nothing behind its prefix. */
export function masked({ words, bits }: Network): Network {
  const mask = (word: number, i: number): number => {
    const kept = Math.min(WORD, Math.max(0, bits - i * WORD))
    return kept === 0 ? 0 : (word & (-1 << (WORD - kept))) >>> 0
  }
  return { words: words.map(mask), bits }
}

/** As people write it: `203.0.113.0/24`, IPv6 as in RFC 5952; an address without its length. */
export function networkText({ words, bits }: Network): string {
  const address = words.length === 1 ? textOfV4(words[0] as number) : textOfV6(words)
  return bits === words.length * WORD ? address : `${address}/${bits}`
}

function wordsOfV4(text: string): number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  let word = 0
  for (const part of parts) {
    const byte = Number(part)
    if (part === '' || !(byte <= 255)) return undefined
    word = word * 256 + byte
  }
  return [word]
}

function wordsOfV6(text: string): number[] | undefined {
  const [address = ''] = text.split('%')
  const gap = address.indexOf('::')
  const head = groupsOf(gap < 0 ? address : address.slice(0, gap))
  const tail = gap < 0 ? [] : groupsOf(address.slice(gap + 2))
  const left = 8 - head.length - tail.length
  if (gap < 0 ? left !== 0 : left < 1) return undefined
  const groups = [...head, ...Array<number>(left).fill(0), ...tail]
  if (!groups.every(group => group <= 0xffff)) return undefined
  return [0, 2, 4, 6].map(i => (groups[i] as number) * 0x1_0000 + (groups[i + 1] as number))
}

/** The 16-bit groups of a part of an IPv6 address, whose end may be written as IPv4; NaN for what is none. */
function groupsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap(group => {
    if (!group.includes('.')) return Number.parseInt(group, 16)
    const [word = Number.NaN] = wordsOfV4(group) ?? []
    return [Math.floor(word / 0x1_0000), word % 0x1_0000]
  })
}

function textOfV4(word: number): string {
  return [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255].join('.')
}

/** A URL's host is written as RFC 5952 says. */
function textOfV6(words: readonly number[]): string {
  const groups = words.flatMap(word => [word >>> 16, word & 0xffff]).map(group => group.toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
