/** Addresses are read as Node reads them, and written as in RFC 5952. */
import { isIP } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import {
  countedNetwork,
  masked,
  networkText,
  parseAddress,
  parseNetwork,
} from '../../../config/words/address.js'

const group = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('0', '0', '1', 'ffff', '00ab', 'DB8', '') },
  fc.nat(0x1ffff).map(n => n.toString(16)),
)
/** Mostly addresses, or nearly. */
const text = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.array(group, { minLength: 1, maxLength: 9 }).map(groups => groups.join(':')),
  fc.tuple(fc.constantFrom('::', '::ffff:', '1:2:3:4:5:6:', ':'), fc.ipV4()).map(parts => parts.join('')),
  fc.array(fc.constantFrom('0', '01', '7', '255', '256', '', '3a'), { maxLength: 5 }).map(a => a.join('.')),
  fc.string(),
)

t.test('a text is an address exactly if Node says so', async () => {
  fc.assert(
    fc.property(text, spelling => {
      fc.pre(!spelling.includes('%'))
      return (parseAddress(spelling) !== undefined) === isIP(spelling) > 0
    }),
    { numRuns: 5000 },
  )
})

t.test('an IPv6 address is written as URLs write it, and reads back the same', async () => {
  const words = fc.array(fc.constantFrom(0, 0, 1, 0xffff, 0x1_0000, 0xffff_ffff, 0x20010db8), {
    minLength: 4,
    maxLength: 4,
  })
  fc.assert(
    fc.property(words, words => {
      const written = networkText({ words, bits: 128 })
      const groups = words.flatMap(word => [word >>> 16, word & 0xffff]).map(n => n.toString(16))
      const isMapped = words[0] === 0 && words[1] === 0 && words[2] === 0xffff
      const [read] = parseAddress(written)?.words ?? []
      return (
        written === new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1) &&
        read === (isMapped ? words[3] : words[0])
      )
    }),
    { numRuns: 2000 },
  )
})

t.test('a network has a whole prefix length, and IPv4-mapped ones are IPv4', async t => {
  for (const [text, written] of [
    ['203.0.113.7/24', '203.0.113.0/24'],
    ['::ffff:203.0.113.7/120', '203.0.113.0/24'],
    ['2001:db8:1:2::3/32', '2001:db8::/32'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
    ['192.0.2.1/32', '192.0.2.1'],
  ] as const) {
    const network = parseNetwork(text)
    t.equal(network && networkText(masked(network)), written, text)
  }
  for (const text of ['10.0.0.0/', '10.0.0.0/8.5', '10.0.0.0/08', '10.0.0.0/33', '::/129', '::ffff:0:0/95']) {
    t.equal(parseNetwork(text), undefined, text)
  }
})

t.test('an IPv6 address is counted by its /64', async t => {
  const counted = (text: string) => networkText(countedNetwork(parseAddress(text) as never))
  t.equal(counted('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  t.equal(counted('192.0.2.1'), '192.0.2.1')
})
