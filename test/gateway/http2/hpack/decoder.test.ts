/** Header blocks that are read: the examples of RFC 7541, those of Node's HTTP/2, and every way to be wrong. */
import t from 'tap'
import { BlockReader } from '../../../../gateway/http2/hpack/block-reader.js'
import { CompressionError } from '../../../../gateway/http2/hpack/compression-error.js'
import { HeaderDecoder } from '../../../../gateway/http2/hpack/decoder.js'
import { slowInputs } from '../../../helpers/hostile.js'

const ROOMY = { fields: 1000, bytes: 256 * 1024 }
const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** A field that is written out, and kept in the table. */
const literal = (name: string, value: string) =>
  Buffer.concat([
    Buffer.from([0x40, name.length]),
    Buffer.from(name, 'latin1'),
    Buffer.from([value.length]),
    Buffer.from(value, 'latin1'),
  ])

/** True if the connection would end with COMPRESSION_ERROR. */
function isRefused(read: () => unknown): boolean {
  try {
    read()
    return false
  } catch (error) {
    return error instanceof CompressionError
  }
}

function reader() {
  const decoder = new HeaderDecoder()
  const read = (block: Buffer | string, limits = ROOMY) =>
    decoder.decode(typeof block === 'string' ? bytes(block) : block, limits)
  const lines = (block: Buffer | string) => read(block).fields.map(({ name, value }) => `${name}: ${value}`)
  return { read, lines }
}

t.test('the examples of RFC 7541, appendix C.1: integers', async t => {
  const integer = (hex: string, mask: number) => {
    const block = new BlockReader()
    block.begin(bytes(hex))
    return block.integer(block.byte(), mask)
  }
  t.equal(integer('0a', 0x1f), 10)
  t.equal(integer('1f 9a 0a', 0x1f), 1337)
  t.equal(integer('2a', 0xff), 42)
  t.equal(integer('ff ff ff ff 7f', 0x7f), 0x7f + 2 ** 28 - 1, 'the largest that is read')
  t.ok(isRefused(() => integer('ff 80 80 80 80 08', 0x7f)))
})

t.test(
  'the examples of appendix C.2: each way to write a field, and what it leaves in the table',
  async t => {
    for (const [block, line, isInserted] of [
      ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', 'custom-key: custom-header', true],
      ['040c 2f73 616d 706c 652f 7061 7468', ':path: /sample/path', false],
      ['1008 7061 7373 776f 7264 0673 6563 7265 74', 'password: secret', false],
      ['82', ':method: GET', false],
    ] as const) {
      const { lines, read } = reader()
      t.same(lines(block), [line])
      if (isInserted) t.same(lines('be'), [line])
      else t.ok(isRefused(() => read('be')))
    }
  },
)

t.test(
  'the examples of RFC 7541, appendix C.3 and C.4: requests, without and with Huffman codes',
  async t => {
    const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com']
    const third = [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com']
    for (const blocks of [
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ]) {
      const { lines } = reader()
      t.same(blocks.map(lines), [
        first,
        [...first, 'cache-control: no-cache'],
        [...third, 'custom-key: custom-value'],
      ])
    }
  },
)

t.test(
  'the examples of appendix C.5 and C.6: responses, with a table of 256 bytes that must evict',
  async t => {
    const at = (time: string) => `date: Mon, 21 Oct 2013 20:13:${time} GMT`
    const location = 'location: https://www.example.com'
    const cookie = 'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'
    for (const blocks of [
      [
        '3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '4803 3330 37c1 c0bf',
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
      ],
      [
        '3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        '4883 640e ffc1 c0bf',
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
      ],
    ]) {
      const { lines } = reader()
      t.same(blocks.map(lines), [
        [':status: 302', 'cache-control: private', at('21'), location],
        [':status: 307', 'cache-control: private', at('21'), location],
        [':status: 200', 'cache-control: private', at('22'), location, 'content-encoding: gzip', cookie],
      ])
    }
  },
)

t.test('a block that breaks the compression is refused', async t => {
  const huge = 'ff ff ff ff ff 01'
  for (const [block, why] of [
    ['80', 'the index 0'],
    ['be', 'an index of a dynamic table that is empty'],
    ['ff ff 7f', 'an index far beyond'],
    [huge, 'an integer beyond 28 bits'],
    ['ff', 'an integer that ends early'],
    ['40 01', 'a name that ends early'],
    ['40 01 61 05 61', 'a value that ends early'],
    ['40 01 61', 'no value'],
    ['00 01 61 82 ff ff', 'only padding, and more than 7 bits of it'],
    ['00 01 61 81 ff', 'only padding, and 8 bits of it'],
    ['00 01 61 84 ff ff ff ff', 'EOS'],
    ['00 01 61 81 fe', 'a code that is cut'],
    ['00 01 61 81 18', 'padding of zeros'],
    ['82 20', 'a change of the size behind a field'],
    ['3f e2 1f', 'a table above 4096 bytes'],
    ['20 3f e1 1f 20', 'three changes of the size'],
  ] as const) {
    t.ok(
      isRefused(() => reader().read(block)),
      why,
    )
  }
})

t.test('changes of the size at the beginning, and a block without fields, are allowed', async t => {
  t.same(reader().lines('20 3f e1 1f 82'), [':method: GET'])
  t.same(reader().read(''), { fields: [], isWhole: true })
  t.same(reader().read('20'), { fields: [], isWhole: true })
})

t.test('a table of size 0 keeps nothing, and a field larger than the table empties it', async t => {
  const { lines, read } = reader()
  t.same(lines('40 01 61 01 62 be'), ['a: b', 'a: b'])
  t.same(lines('20 40 01 61 01 62'), ['a: b'])
  t.ok(isRefused(() => read('be')))
  const other = reader()
  other.lines('3f 09 40 01 61 01 62') // 40 bytes: one entry of 34.
  t.same(other.lines('be'), ['a: b'])
  other.lines('40 01 61 07 62 62 62 62 62 62 62')
  t.same(other.lines('be'), ['a: bbbbbbb'])
  other.lines('40 01 61 08 62 62 62 62 62 62 62 62')
  t.ok(isRefused(() => other.read('be')))
})

t.test('an entry goes when the table has one byte too many, and not before', async t => {
  const { lines, read } = reader()
  lines('3f 25 40 01 61 01 62 40 01 63 01 64') // 68 bytes: two entries of 34.
  t.same(lines('be bf'), ['c: d', 'a: b'])
  lines('40 01 65 02 66 67') // 35 bytes: there is no room beside it.
  t.same(lines('be'), ['e: fg'])
  t.ok(isRefused(() => read('bf')))
})

t.test('each field is judged once, by the rules of HTTP/1.1 and of RFC 9113', async t => {
  const { read } = reader()
  for (const [name, value, kind] of [
    ['x-a', 'b c', 'ordinary'],
    ['x-a', '', 'ordinary'],
    ['x-a', 'caf\xe9', 'ordinary'],
    ['x-a', 'a\tb', 'ordinary'],
    ['te', 'trailers', 'te'],
    ['connection', 'close', 'connection'],
    ['transfer-encoding', 'chunked', 'connection'],
    [':path', '/', ':path'],
    [':unknown', '1', 'invalid'],
    ['', 'b', 'invalid'],
    ['X-A', 'b', 'invalid'],
    ['x a', 'b', 'invalid'],
    ['x-a:', 'b', 'invalid'],
    ['x-a', ' b', 'invalid'],
    ['x-a', 'b\t', 'invalid'],
    ['x-a', 'a\r\nb', 'invalid'],
    ['x-a', 'a\0b', 'invalid'],
    ['x-a', 'a\x7fb', 'invalid'],
  ] as const) {
    t.equal(read(literal(name, value)).fields[0]?.kind, kind, JSON.stringify([name, value]))
    t.equal(read('be').fields[0]?.kind, kind, 'from the table, too')
  }
  read(literal('x-b', 'bad\0'))
  t.equal(read('7e 01 61').fields[0]?.kind, 'ordinary', 'a bad value does not spoil its name')
})

t.test('what is beyond the limits is left out, but the table stays right', async t => {
  const { read, lines } = reader()
  const a = '40 01 61 01 62'
  t.same(read(`${a} ${a} 40 01 63 01 64`, { fields: 2, bytes: 1000 }).isWhole, false)
  t.same(lines('be bf'), ['c: d', 'a: b'])
  const { fields, isWhole } = read('82 be bf', { fields: 9, bytes: 80 })
  t.same([fields.length, isWhole], [2, false])
})

t.test('the pieces of a cookie count as one field', async t => {
  const { read } = reader()
  const piece = literal('cookie', 'a=1')
  const pieces = Buffer.concat(Array.from({ length: 50 }, () => piece))
  t.same(read(pieces, { fields: 1, bytes: 10_000 }).isWhole, true)
  t.same(read(Buffer.concat([pieces, literal('x-a', '')]), { fields: 1, bytes: 10_000 }).isWhole, false)
  t.same(read(pieces, { fields: 1, bytes: 1_000 }).isWhole, false)
})

t.test('few bytes that stand for many end the connection, soon and in little memory', async t => {
  const { read } = reader()
  const value = 'v'.repeat(4000)
  read(Buffer.concat([bytes('40 01 61'), bytes('7f a1 1e'), Buffer.from(value)]))
  t.ok(
    isRefused(() => read(Buffer.alloc(65_536, 0xbe))),
    '256 MiB of fields',
  )
  const kept = read(Buffer.alloc(60, 0xbe), { fields: 10, bytes: 16_384 })
  t.same([kept.fields.length, kept.isWhole], [4, false])
})

t.test('empty entries fill the table, and no more', async t => {
  const { read, lines } = reader()
  const empty = Buffer.alloc(60_000)
  for (let i = 0; i < empty.length; i += 3) empty[i] = 0x40
  for (let i = 0; i < 10; i += 1) {
    t.ok(isRefused(() => read(empty, { fields: 1, bytes: 1000 })))
  }
  t.equal(lines('fe').length, 1, 'the 65th entry')
  t.equal(lines('ff3e').length, 1, 'the 128th')
  t.ok(
    isRefused(() => read('ff3f')),
    'there is no 129th',
  )
})

t.test('the largest block takes the time of its bytes, whatever they are', async t => {
  const units = [
    ...[
      '82',
      '40 00 00',
      '00 00 00',
      '00 01 61 00',
      '40 01 61 7f 81 1e',
      'be',
      'bf be',
      '7e 00',
      '7e 03 61 62 63',
    ],
    ...['20', '3f e1 1f', 'ff 80 80 80 00', '00 01 61 81 1f', '40 81 1f 81 1f', '00', '80', 'ff', '8f'],
  ]
  const many = units.map(unit => {
    const one = bytes(unit)
    return Buffer.alloc(65_536 - (65_536 % one.length), one)
  })
  const long = ['61', '1f', 'ff', '7f', '18', 'e7 a5'].flatMap(unit =>
    ['00 01 61 7f', '00 01 61 ff', '40 7f', '40 ff'].map(start => {
      // The length of the rest: 65,000 bytes.
      return Buffer.concat([bytes(start), bytes('e9 fa 03'), Buffer.alloc(65_000, bytes(unit)), bytes('00')])
    }),
  )
  t.same(await slowInputs([...many, ...long], block => reader().read(block)), [])
})
