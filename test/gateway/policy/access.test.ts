/** Who is denied or exempt: the lookup by prefix compared with a scan of every entry. */
import { BlockList } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { masked, networkText, parseNetwork } from '../../../config/words/address.js'
import { Access, AccessTable } from '../../../gateway/policy/access.js'
import { accessEntry, networkFault, type WrittenAccess } from '../../../gateway/policy/access-entries.js'

const SOURCE = { file: 'access.yaml', line: 1 }
const NOW = Date.UTC(2026, 5, 1)

/** Few values for each byte, so that networks contain each other. */
const byte = fc.constantFrom(0, 10, 127, 128, 192, 255)
const group = fc.constantFrom(0, 1, 0x0db8, 0x2001, 0xffff)
const v4 = fc.array(byte, { minLength: 4, maxLength: 4 }).map(bytes => bytes.join('.'))
const v6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map(groups => groups.map(one => one.toString(16)).join(':'))
const mapped = v4.map(address => `::ffff:${address}`)
const address = fc.oneof({ weight: 3, arbitrary: v4 }, { weight: 2, arbitrary: v6 }, mapped)
const network = fc.oneof(
  address,
  fc
    .tuple(fc.oneof(v4, v6), fc.integer({ min: 0, max: 128 }))
    .map(([text, bits]) => `${text}/${text.includes(':') ? bits : bits % 33}`),
)
const project = fc.constantFrom('acme', 'dev', 'other')
const place = fc.oneof(
  { weight: 4, arbitrary: network.map(one => ({ networks: [textOf(one)] })) },
  project.map(one => ({ projects: [one] })),
)
const entries = (most: number) =>
  fc
    .array(
      fc.record({
        place,
        action: fc.constantFrom('exempt', 'deny'),
        mode: fc.constantFrom('enforce', 'report-only'),
        until: fc.constantFrom(undefined, NOW, NOW + 1, NOW - 1),
        runtime: fc.boolean(),
      }),
      { maxLength: most },
    )
    .map(all => all.map(({ place, ...rest }, i) => ({ ...rest, ...place, id: `entry-${i}` })))
type Entry = WrittenAccess & { readonly runtime: boolean }

function textOf(network: string): string {
  const parsed = parseNetwork(network)
  if (parsed === undefined) throw new Error(`"${network}" is read as nothing`)
  return networkText(masked(parsed))
}

/** Whether Node's own list of networks contains the address. */
function holds(network: string, client: string): boolean {
  const family = (text: string) => (text.includes(':') ? 'ipv6' : 'ipv4')
  if (family(network) !== family(client)) return false
  const list = new BlockList()
  const [net = '', bits] = network.split('/')
  if (bits === undefined) list.addAddress(net, family(net))
  else list.addSubnet(net, Number(bits), family(net))
  return list.check(client, family(client))
}

/** IPv4-mapped addresses count as IPv4, in both spellings. */
function folded(client: string): string {
  const [, high, low] = /^(?:0:){5}ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(client) ?? []
  if (high === undefined || low === undefined) return client.replace('::ffff:', '')
  const bytes = [high, low].flatMap(text => [Number.parseInt(text, 16) >> 8, Number.parseInt(text, 16) & 255])
  return bytes.join('.')
}

/** The expected decision: every entry is checked. */
function scan(
  all: readonly Entry[],
  mode: string,
  client: string,
  id: string,
): { bits: number; action: string } {
  let found = { bits: -2, action: 'none' }
  const counted = folded(client)
  for (const { networks = [], projects = [], action, until, ...entry } of all) {
    if (entry.mode !== mode || (until !== undefined && until <= NOW)) continue
    const lengths = [
      ...networks.filter(one => holds(one, counted)).map(one => (parseNetwork(one) as { bits: number }).bits),
      ...(projects.includes(id) ? [-1] : []),
    ]
    for (const bits of lengths) {
      if (bits > found.bits || (bits === found.bits && action === 'deny')) found = { bits, action }
    }
  }
  return found
}

t.test('the lookup finds what a scan of all entries finds', async () => {
  fc.assert(
    fc.property(entries(1000), fc.array(fc.tuple(address, project), { minLength: 5 }), (all, asked) => {
      const table = (runtime: boolean) =>
        new AccessTable(
          all.filter(one => one.runtime === runtime).map(one => accessEntry(one as Entry, SOURCE)),
        )
      const access = new Access(table(false), { table: table(true) }, () => NOW)
      compare(access, all as Entry[], asked)
    }),
    { numRuns: 60 },
  )
})

t.test('a table from which entries were removed finds only those left', async () => {
  const choice = fc.array(fc.boolean(), { minLength: 200, maxLength: 200 })
  fc.assert(
    fc.property(
      entries(200),
      choice,
      fc.array(fc.tuple(address, project), { minLength: 5 }),
      (all, stays, asked) => {
        const table = new AccessTable([])
        const compiled = all.map(one => accessEntry(one as Entry, SOURCE))
        for (const entry of compiled) table.add(entry)
        for (const [i, entry] of compiled.entries()) if (!stays[i]) table.remove(entry)
        const left = (all as Entry[]).filter((_, i) => stays[i])
        compare(new Access(new AccessTable([]), { table }, () => NOW), left, asked)
        for (const entry of compiled) table.remove(entry)
        if (!table.isEmpty) throw new Error('Something is left of nothing.')
      },
    ),
    { numRuns: 60 },
  )
})

/** Throws when the lookup and the scan disagree. */
function compare(
  access: Access,
  all: readonly Entry[],
  asked: readonly (readonly [client: string, project: string])[],
): void {
  for (const [client, id] of asked) {
    const ruling = access.rulingOn({ client: parseNetwork(client) ? textOf(client) : client }, { id })
    for (const [mode, match] of [
      ['enforce', ruling?.enforced],
      ['report-only', ruling?.reported],
    ] as const) {
      const expected = scan(all, mode, client, id)
      const told = { bits: match?.bits ?? -2, action: match?.entry.action ?? 'none' }
      if (told.bits !== expected.bits || told.action !== expected.action) {
        throw new Error(`${client} of ${id}, ${mode}: ${JSON.stringify({ told, expected })}`)
      }
    }
  }
}

t.test('a client recorded as a network matches only entries that contain all of it', async t => {
  const entry = (networks: string[]) =>
    accessEntry({ id: 'one', networks, action: 'deny', mode: 'enforce' }, SOURCE)
  const denies = (network: string, client: string) =>
    new Access(new AccessTable([entry([network])])).rulingOn({ client }, undefined) !== undefined
  t.ok(denies('203.0.113.0/24', '203.0.113.0/24'))
  t.ok(denies('203.0.0.0/16', '203.0.113.0/24'))
  t.notOk(denies('203.0.113.0/28', '203.0.113.0/24'))
  t.notOk(denies('203.0.113.0', '203.0.113.0/24'))
})

t.test('a client without an address matches no network, but still its project', async t => {
  const project = accessEntry({ id: 'one', projects: ['acme'], action: 'deny', mode: 'enforce' }, SOURCE)
  const all = accessEntry(
    { id: 'all', networks: ['0.0.0.0/0', '::/0'], action: 'deny', mode: 'enforce' },
    SOURCE,
  )
  for (const client of [
    '',
    'unix',
    '1.2.3',
    '1.2.3.256',
    '1.2..3',
    ':',
    '1::2::3',
    '12345::',
    '1.2.3.4/33',
  ]) {
    t.equal(new Access(new AccessTable([all])).rulingOn({ client }, undefined), undefined, client)
    t.equal(
      new Access(new AccessTable([all, project])).rulingOn({ client }, { id: 'acme' })?.enforced?.bits,
      -1,
    )
  }
})

t.test('bits behind the prefix are reported, with what may have been meant', async t => {
  t.equal(networkFault('203.0.113.0/24'), undefined)
  t.equal(networkFault('2001:db8::/32'), undefined)
  t.equal(networkFault('::ffff:203.0.113.0/120'), undefined)
  t.match(networkFault('203.0.113.7/24'), 'Write "203.0.113.0/24" for the network, or "203.0.113.7"')
  t.match(networkFault('2001:db8::1/32'), 'Write "2001:db8::/32" for the network, or "2001:db8::1"')
})
