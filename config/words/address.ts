/**
 * IP addresses and networks as the 32-bit words they are looked up by. Every folder reads addresses by this file: what a
 * client is counted by, what a rule names and what is trusted must be the same address. Pure.
 */

/** The first `bits` of an address: one word of IPv4, four of IPv6. An address is a network of all its bits. */
export interface Network {
  readonly words: readonly number[]
  readonly bits: number
}

const WORD = 32

/** Bits of an IPv4-mapped address before the IPv4 address. */
const MAPPED_BITS = 96
/** A number without zeros before it. */
const LENGTH = /^(0|[1-9][0-9]{0,2})$/

/** Reads one address; IPv4-mapped ones are folded to IPv4. Undefined for any other text, such as one with a zone. */
export function parseAddress(text: string): Network | undefined {
  const words = text.includes(':') ? wordsOfV6(text) : wordsOfV4(text)
  if (words === undefined) return undefined
  const address = isMapped(words) ? words.slice(3) : words
  return { words: address, bits: address.length * WORD }
}

/**
 * Reads `203.0.113.0/24`, `2001:db8::/32` or an address; IPv4-mapped ones are folded to IPv4. Bits after the prefix are
 * left as they are.
 *
 * @returns undefined for any other text, and for a network of IPv4-mapped addresses that is wider than IPv4
 */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return parseAddress(text)
  const address = parseAddress(text.slice(0, slash))
  const length = text.slice(slash + 1)
  if (address === undefined || !LENGTH.test(length)) return undefined
  const isFolded = address.bits === WORD && text.includes(':')
  const bits = Number(length) - (isFolded ? MAPPED_BITS : 0)
  return bits >= 0 && bits <= address.bits ? { words: address.words, bits } : undefined
}

function isMapped(words: readonly number[]): boolean {
  return words.length === 4 && words[0] === 0 && words[1] === 0 && words[2] === 0xffff
}

/** The network with all bits after its prefix cleared. */
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

/** What an address is counted by: an IPv4 address itself, an IPv6 address by its /64 (usually one customer). */
export function countedNetwork({ words, bits }: Network): Network {
  return words.length === 1
    ? { words, bits }
    : { words: [words[0] as number, words[1] as number, 0, 0], bits: 64 }
}

// Every request's address is parsed: character by character, that costs a tenth of splitting and matching.
const [DOT, COLON, ZERO] = [46, 58, 48]

function wordsOfV4(text: string): number[] | undefined {
  let [word, byte, digits, dots] = [0, 0, 0, 0]
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === DOT && digits > 0) {
      word = word * 256 + byte
      byte = 0
      digits = 0
      dots += 1
      continue
    }
    const digit = code - ZERO
    byte = byte * 10 + digit
    digits += 1
    // A number that begins with a zero is octal for some readers.
    if (digit < 0 || digit > 9 || byte > 255 || (digits > 1 && byte < 10)) return undefined
  }
  return dots === 3 && digits > 0 ? [word * 256 + byte] : undefined
}

function wordsOfV6(text: string): number[] | undefined {
  const groups: number[] = []
  let [gap, group, digits, start] = [-1, 0, 0, 0]
  let i = 0
  for (; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === DOT) {
      const [word] = wordsOfV4(text.slice(start)) ?? []
      if (word === undefined) return undefined
      groups.push(word >>> 16)
      group = word & 0xffff
      i = text.length
      break
    }
    if (code !== COLON) {
      const digit = hexDigit(code)
      group = group * 16 + digit
      digits += 1
      if (digit < 0 || digits > 4) return undefined
      continue
    }
    if (digits > 0) groups.push(group)
    if (text.charCodeAt(i + 1) === COLON) {
      if (gap >= 0) return undefined
      gap = groups.length
      i += 1
    } else if (digits === 0 || i + 1 === text.length) return undefined
    group = 0
    digits = 0
    start = i + 1
  }
  if (digits > 0) groups.push(group)
  const left = 8 - groups.length
  if (gap < 0 ? left !== 0 : left < 1) return undefined
  const at = (k: number): number =>
    (gap < 0 || k < gap ? groups[k] : k < gap + left ? 0 : groups[k - left]) as number
  const word = (k: number): number => at(k) * 0x1_0000 + at(k + 1)
  return [word(0), word(2), word(4), word(6)]
}

/** -1 if it is not a hexadecimal digit. */
function hexDigit(code: number): number {
  if (code >= ZERO && code < ZERO + 10) return code - ZERO
  const letter = (code | 32) - 97
  return letter >= 0 && letter < 6 ? letter + 10 : -1
}

function textOfV4(word: number): string {
  return [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255].join('.')
}

/** RFC 5952: the first of the longest runs of two or more zeros is left out. */
function textOfV6(words: readonly number[]): string {
  const group = (i: number): number => ((words[i >> 1] as number) >>> (i % 2 === 0 ? 16 : 0)) & 0xffff
  let [from, longest] = [8, 1]
  for (let i = 0, zeros = 0; i < 8; i += 1) {
    zeros = group(i) === 0 ? zeros + 1 : 0
    if (zeros > longest) [from, longest] = [i + 1 - zeros, zeros]
  }
  let text = ''
  for (let i = 0; i < 8; i += 1) {
    if (i === from) {
      text += '::'
      i += longest - 1
    } else text += (i === 0 || text.endsWith('::') ? '' : ':') + group(i).toString(16)
  }
  return text
}

/** The URL of a port; an IPv6 host is written in brackets (RFC 3986 section 3.2.2). */
export function urlOf({ host, port }: { host: string; port: number }, scheme = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
