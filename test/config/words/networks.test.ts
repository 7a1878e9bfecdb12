/** Whether an address is in one of many networks. */
import fc from 'fast-check'
import t from 'tap'
import { createNetworks } from '../../../config/words/networks.js'

t.test('membership agrees with comparing the bits of each network', async t => {
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom('10.0.0.1', '10.0.1.1', '::1', '2001:db8::1', '2001:db8:0:1::1'),
  )
  const network = fc.tuple(address, fc.nat()).map(([text, bits]) => {
    return `${text}/${bits % (text.includes(':') ? 129 : 33)}`
  })
  fc.assert(
    fc.property(fc.array(fc.oneof(address, network), { maxLength: 20 }), address, (networks, one) => {
      t.equal(
        createNetworks(networks)(one),
        networks.some(cidr => lies(one, cidr)),
        `${one} in ${networks}`,
      )
    }),
    { numRuns: 300 },
  )
})

t.test('an IPv4 address is the same however it is written', async t => {
  const holds = createNetworks(['::ffff:10.1.0.0/112', '192.0.2.1'])
  for (const [address, expected] of [
    ['10.1.255.255', true],
    ['10.2.0.0', false],
    ['::ffff:10.1.2.3', true],
    ['::ffff:c000:201', true],
    ['::c000:201', false],
    ['192.0.2.2', false],
    ['', false],
    ['hash-of-somebody', false],
  ] as const) {
    t.equal(holds(address), expected, address)
  }
})

/** Compares bit by bit; not for IPv4-mapped addresses. */
function lies(address: string, cidr: string): boolean {
  const [network = '', bits] = cidr.split('/')
  const [a, b] = [bitsOf(address), bitsOf(network)]
  return a.length === b.length && a.startsWith(b.slice(0, bits === undefined ? b.length : Number(bits)))
}

function bitsOf(address: string): string {
  if (!address.includes(':'))
    return address
      .split('.')
      .map(byte => Number(byte).toString(2).padStart(8, '0'))
      .join('')
  const dotted = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes) => {
    const [a, b, c, d] = bytes.slice(0, 4).map(Number) as [number, number, number, number]
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  })
  const [left = '', right] = dotted.split('::')
  const [head, tail] = [left, right ?? ''].map(half => half.split(':').filter(part => part !== ''))
  const zeros = Array(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0')
  const groups = [...(head ?? []), ...zeros, ...(tail ?? [])]
  const bits = groups.map(group => Number.parseInt(group, 16).toString(2).padStart(16, '0')).join('')
  return /^0{80}1{16}/.test(bits) ? bits.slice(96) : bits
}
