import fc from 'fast-check'
import t from 'tap'
import { networkText, parseNetwork } from '../../../config/words/address.js'
import { GatewayError } from '../../../gateway/errors.js'
import { clientAddress, networkOf, TrustedProxies } from '../../../gateway/listen/client.js'
import { normalizePath } from '../../../gateway/listen/path.js'
import { parseTarget } from '../../../gateway/listen/target.js'
import { cpuMs } from '../../helpers/cpu-time.js'

const badTarget = { code: 'bad-target' }

t.test('every spelling of a path has one normal form', async t => {
  for (const [raw, normal] of [
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/b/', '/a/b/'],
    ['//a///b', '/a/b'],
    ['/./a/.', '/a/'],
    ['/x/../a', '/a'],
    ['/a/..', '/'],
    ['/../../a', '/a'],
    ['/a//../b', '/b'],
    ['/x/%2e%2E/a', '/a'],
    ['/%2e/a', '/a'],
    ['/%61dmin', '/admin'],
    ['/%7euser', '/~user'],
    ['/a%20b%c3%a9', '/a%20b%C3%A9'],
    ['/%252e%252e/a', '/%252e%252e/a'],
    ['/a;v=1,2', '/a;v=1,2'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a.b/..c/...', '/a.b/..c/...'],
    ['/{id}', '/%7Bid%7D'],
    ['/%7Bid%7D', '/%7Bid%7D'],
    ['/A', '/A'],
    ['/%21%24%26%27%28%29%2a%2B%2c%3A%3d%40', "/!$&'()*+,:=@"],
    ['/a%3bv=1', '/a%3Bv=1'],
    ['/%c2%a0%e2%80%a8', '/%C2%A0%E2%80%A8'],
    ['/%40%c3%a9%2540', '/@%C3%A9%2540'],
  ] as const) {
    t.equal(normalizePath(raw), normal, raw)
  }
})

const CONTROLS = Array.from({ length: 0xa0 }, (_, code) => code)
  .filter(code => code < 0x20 || code >= 0x7f)
  .map(code => encodeURIComponent(String.fromCharCode(code)))

t.test('an ambiguous path is refused', async t => {
  for (const raw of [
    '',
    'a',
    '/a%2Fb',
    '/a%2fb',
    '/a%5cb',
    '/a\\b',
    ...CONTROLS.map(escaped => `/a${escaped}`),
    '/%c2%85/a',
    '/a%',
    '/a%2',
    '/a%zz',
    '/a%%32',
    '/a#b',
    '/a b',
    '/a\tb',
    '/\x00',
    '/\x7f',
    '/\xe9',
    '/%ff',
    '/%c0%af',
    '/%ed%a0%80',
    '/%c3',
    '/%c3x%a9',
  ]) {
    t.throws(() => normalizePath(raw), badTarget, JSON.stringify(raw))
  }
})

t.test('the normal form of a path is stable, and every generated spelling leads to it', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2E',
      '%',
      '%41',
      '%c3%a9',
      '%25',
      '%2525',
      ';',
      '{',
      '~',
      'a',
      'B',
      '1',
      '-',
    ),
    fc.string({ maxLength: 3 }),
  )
  const path = fc.array(piece, { maxLength: 12 }).map(pieces => `/${pieces.join('')}`)
  fc.assert(
    fc.property(path, raw => {
      let normal: string
      try {
        normal = normalizePath(raw)
      } catch (error) {
        return error instanceof GatewayError && error.code === 'bad-target'
      }
      return (
        normalizePath(normal) === normal &&
        /^\/(?:[\w~!$&'()*+,;=:@./-]|%[0-9A-F]{2})*$/.test(normal) &&
        !/\/\/|\/\.{1,2}(?:\/|$)/.test(normal)
      )
    }),
    { numRuns: 2000 },
  )
  const segment = fc.stringMatching(/^[a-z0-9~_!$&'()*+,:=@-]{1,6}$/)
  fc.assert(
    fc.property(
      fc.array(segment, { minLength: 1, maxLength: 4 }),
      fc.infiniteStream(fc.nat(5)),
      (segments, dice) => {
        const plain = `/${segments.join('/')}`
        const spelt = [...plain].map(character => {
          const die = dice.next().value as number
          if (character === '/') return ['/', '//', '/./', '/x/../', '/%2e/', '/y/%2E%2e/'][die]
          const code = character.charCodeAt(0).toString(16)
          return die === 0 ? `%${code}` : die === 1 ? `%${code.toUpperCase()}` : character
        })
        return normalizePath(spelt.join('')) === plain
      },
    ),
    { numRuns: 500 },
  )
})

t.test('a long hostile path costs little CPU time', async t => {
  const took = await cpuMs(() => {
    for (const unit of ['/', '/a', '/../', '%41', 'a.', '.', '/.', '%c3%a9', '{', '/a/..']) {
      const raw = `/${unit.repeat(16_000 / unit.length)}`
      try {
        normalizePath(raw)
        normalizePath(`${raw}%`)
      } catch {}
    }
  })
  t.ok(took < 500, `${took} ms`)
})

t.test('a request target is split into path, query and authority, or refused', async t => {
  t.same(parseTarget('GET', '/a/../b?c=/../d'), {
    path: '/b',
    spelt: '/b',
    query: '?c=/../d',
    authority: undefined,
  })
  t.same(parseTarget('GET', 'http://shop:81/a?b'), {
    path: '/a',
    spelt: '/a',
    query: '?b',
    authority: 'shop:81',
  })
  t.same(parseTarget('GET', 'HTTPS://shop'), { path: '/', spelt: '/', query: '', authority: 'shop' })
  t.same(parseTarget('GET', 'http://shop?b'), { path: '/', spelt: '/', query: '?b', authority: 'shop' })
  t.same(parseTarget('OPTIONS', '*'), { path: '*', spelt: '*', query: '', authority: undefined })
  for (const [method, url] of [
    ['GET', '*'],
    ['GET', 'shop:443'],
    ['GET', 'ftp://shop/'],
    ['GET', 'http:///a'],
    ['GET', '/a?b#c'],
    ['GET', '/a?b c'],
    ['GET', '/a?b=\xe9'],
    ['GET', ''],
  ] as const) {
    t.throws(() => parseTarget(method, url), badTarget, url)
  }
})

t.test('the client’s address is the first untrusted hop from the right', async t => {
  const trusted = new TrustedProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8', '::ffff:172.16.0.0/108'])
  for (const [what, peer, hops, address, isTrusted] of [
    ['an unknown peer is the client, whatever it says', '8.8.8.8', '1.1.1.1', '8.8.8.8', false],
    ['a trusted peer without hops is the client', '10.0.0.1', undefined, '10.0.0.1', true],
    [
      'the first unknown hop from the right is the client',
      '10.0.0.1',
      '6.6.6.6, 1.1.1.1, 10.0.0.2',
      '1.1.1.1',
      true,
    ],
    ['a single address can be trusted', '192.0.2.7', '1.1.1.1', '1.1.1.1', true],
    [
      'the leftmost hop is the client when all are trusted',
      '10.0.0.1',
      '10.0.0.3,10.0.0.2',
      '10.0.0.3',
      true,
    ],
    ['garbage ends the walk at the last good hop', '10.0.0.1', '1.1.1.1, junk, 10.0.0.2', '10.0.0.2', true],
    ['numbers in other bases are garbage', '10.0.0.1', '0x7f.1', '10.0.0.1', true],
    ['an empty hop is garbage', '10.0.0.1', '1.1.1.1,', '10.0.0.1', true],
    ['a port is not part of an address', '10.0.0.1', '1.1.1.1:4711', '1.1.1.1', true],
    ['brackets are not part of an address', 'fd00::1', '[2001:DB8::1]:4711', '2001:db8::1', true],
    ['mapped IPv4 peer', '::ffff:8.8.8.8', undefined, '8.8.8.8', false],
    ['peer of a mapped range', '172.31.0.1', '1.1.1.1', '1.1.1.1', true],
    ['peer beside a mapped range', '172.32.0.1', '1.1.1.1', '172.32.0.1', false],
    ['mapped IPv4 peer that is trusted', '::ffff:10.0.0.1', '1.1.1.1', '1.1.1.1', true],
    ['mapped IPv4 hop in hex', '10.0.0.1', '0:0:0:0:0:FFFF:0101:0101', '1.1.1.1', true],
    ['an IPv4-compatible IPv6 address is no IPv4 address', '10.0.0.1', '::1.1.1.1', '::101:101', true],
    ['a zone is not part of an address', 'fd00::1%eth0', 'fe80::2%3', 'fe80::2', true],
    ['numbers that begin with a zero are garbage', '10.0.0.1', '1.1.1.010', '10.0.0.1', true],
    ['IPv6 in its short form', '10.0.0.1', '2001:0DB8:0:0:0:0:0:1', '2001:db8::1', true],
  ] as const) {
    t.same(clientAddress(peer, hops, trusted), { address, trusted: isTrusted }, what)
  }
  t.equal(clientAddress('::ffff:9.9.9.9', '1.1.1.1', new TrustedProxies([])).address, '9.9.9.9')
  t.equal(networkOf('1.2.3.4'), '1.2.3.4')
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  for (const cidr of [
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/',
    'x',
    '10.0.0/8',
    '10.0.0.0/8/8',
    '',
    '::ffff:10.0.0.0/64',
    '::ffff:10.0.0.0/129',
  ]) {
    t.throws(() => new TrustedProxies([cidr]), {
      message: `'${cidr}' is not a CIDR. Write it like 10.0.0.0/8 or fd00::/8.`,
    })
  }
})

t.test('a client’s address in any spelling is the network that rules look up', async () => {
  const none = new TrustedProxies([])
  const hex = fc.nat(0xffff).map(group => group.toString(16))
  const tail = fc.oneof(
    fc.ipV4(),
    fc.tuple(hex, hex).map(groups => groups.join(':')),
  )
  const short = fc.tuple(fc.constantFrom('::', '::ffff:', '64:ff9b::'), tail).map(parts => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), short), spelling => {
      const { address } = clientAddress(spelling, undefined, none)
      const [counted, lookedUp] = [address, spelling].map(parseNetwork)
      return counted && lookedUp && networkText(counted) === networkText(lookedUp)
    }),
    { numRuns: 2000 },
  )
})

t.test('no X-Forwarded-For crashes the gateway or changes the address of an untrusted peer', async () => {
  const trusted = new TrustedProxies(['10.0.0.0/8'])
  fc.assert(
    fc.property(fc.string(), hops => {
      const { address } = clientAddress('10.0.0.1', hops, trusted)
      networkOf(address)
      return clientAddress('8.8.8.8', hops, trusted).address === '8.8.8.8'
    }),
  )
})
