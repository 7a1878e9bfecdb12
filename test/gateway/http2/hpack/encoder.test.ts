/** Header blocks that are written: what we read of them, and what Node's HTTP/2 reads, is what was meant. */
import fc from 'fast-check'
import t from 'tap'
import { HeaderDecoder } from '../../../../gateway/http2/hpack/decoder.js'
import { BEGIN_ROOM, fieldRoom, HeaderEncoder } from '../../../../gateway/http2/hpack/encoder.js'

type Field = readonly [name: string, value: string]

/** The room is exactly what is promised, so that a field that needs more is cut and read wrongly. */
function encode(encoder: HeaderEncoder, fields: readonly Field[]): Buffer {
  const room = fields.reduce((sum, [name, value]) => sum + fieldRoom(name, value), BEGIN_ROOM)
  const target = Buffer.alloc(room)
  let at = encoder.begin(target, 0)
  for (const [name, value] of fields) {
    const next = encoder.field(target, at, name, value)
    if (next - at > fieldRoom(name, value)) throw new Error(`${name} takes more than its room`)
    at = next
  }
  return target.subarray(0, at)
}

const decode = (decoder: HeaderDecoder, block: Buffer) =>
  decoder.decode(block, { fields: 1000, bytes: 256 * 1024 }).fields.map(({ name, value }) => [name, value])

const RESPONSE: readonly Field[] = [
  [':status', '200'],
  ['Content-Type', 'application/json'],
  ['Server', 'nginx'],
  ['RateLimit-Policy', '"all";q=100;w=60'],
]
const SEEN = RESPONSE.map(([name, value]): Field => [name.toLowerCase(), value])

t.test('what repeats takes a byte a field; names are lower case', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  t.same(decode(decoder, encode(encoder, RESPONSE)), SEEN)
  const again = encode(encoder, RESPONSE)
  t.equal(again.length, RESPONSE.length)
  t.same(decode(decoder, again), SEEN)
})

t.test('a name whose values keep changing does not push the others out of the table', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  let bytes = 0
  for (let i = 0; i < 1000; i += 1) {
    const value = `${i}`.padEnd(500, 'x')
    const block = encode(encoder, [...RESPONSE, ['X-Remaining', value]])
    t.same(decode(decoder, block), [...SEEN, ['x-remaining', value]])
    if (i >= 500) bytes = Math.max(bytes, block.length)
  }
  t.ok(bytes < RESPONSE.length + fieldRoom('x-remaining', 'x'.repeat(500)), `${bytes} bytes`)
})

t.test('secrets are in no table, here or on the way', async t => {
  const encoder = new HeaderEncoder()
  for (const name of ['authorization', 'cookie', 'set-cookie', 'x-api-key', 'proxy-authorization']) {
    for (let i = 0; i < 2; i += 1) {
      const block = encode(encoder, [[name, 'secret']])
      t.equal((block[0] as number) & 0xf0, 0x10, `${name}: never indexed`)
    }
  }
})

t.test('a name that only looks like a secret one when cut to bytes does not make that one known', async t => {
  const encoder = new HeaderEncoder()
  for (const name of ['cook\u0169e', 'set-cook\u0169e', 'Set-Cook\u0169e']) encode(encoder, [[name, 'x']])
  for (const name of ['cookie', 'set-cookie', 'Set-Cookie'])
    t.equal((encode(encoder, [[name, 'secret']])[0] as number) & 0xf0, 0x10, name)
})

t.test('names of one connection cost another one nothing', async t => {
  const junk = new HeaderEncoder()
  for (let i = 0; i < 2000; i += 1) encode(junk, [[`x-junk-${i}`, 'v']])
  const encoder = new HeaderEncoder()
  const fields: readonly Field[] = [
    ['X-Of-This-Application', 'a'],
    ['server', 'nginx'],
  ]
  encode(encoder, fields)
  t.equal(encode(encoder, fields).length, fields.length, 'what repeats takes a byte a field')
})

t.test('a connection with very many names begins anew, and is read rightly', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  for (let i = 0; i < 1000; i += 1) {
    const fields: readonly Field[] = [...SEEN, [`x-${i}`, 'v']]
    t.strictSame(decode(decoder, encode(encoder, fields)), fields)
  }
  encode(encoder, RESPONSE)
  t.equal(encode(encoder, RESPONSE).length, RESPONSE.length)
})

t.test('a character that is no byte becomes a question mark, never a line break', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  for (const value of ['a\u010ab\u020dc', `${'a'.repeat(100)}\u010ab\u020dc`]) {
    for (let i = 0; i < 2; i += 1) {
      const [[, read] = []] = decode(decoder, encode(encoder, [['x-a', value]]))
      t.equal(read, value.replace(/[^a-z]/g, '?'))
    }
  }
})

t.test('what has become a question mark is not taken for the character that its byte would be', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  for (const [value, read] of [
    ['\u01e9', '?'],
    ['\u00e9', '\u00e9'],
    ['?', '?'],
  ] as const)
    t.same(decode(decoder, encode(encoder, [['x-a', value]])), [['x-a', read]])
})

t.test('the peer may shrink the table and let it grow again between two blocks', async t => {
  const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
  decode(decoder, encode(encoder, RESPONSE))
  encoder.resize(0)
  encoder.resize(4096)
  const block = encode(encoder, RESPONSE)
  t.equal(block[0], 0x20, 'it says that the table was empty')
  t.same(decode(decoder, block), SEEN)
  encoder.resize(100_000)
  t.equal(encode(encoder, RESPONSE).length, RESPONSE.length, 'we never use more than 4096 bytes')
})

t.test('whatever is encoded is what is decoded, whatever size the table has', async t => {
  const name = fc.oneof(
    fc.constantFrom('Date', 'date', 'Server', ':status', 'X-A', 'x-b', 'ETag', 'vary', 'Set-Cookie'),
    fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9-]{0,80}$/),
  )
  const value = fc.oneof(
    fc.constantFrom('', '200', 'a', 'b', 'gzip', 'x'.repeat(900), 'x'.repeat(1100), 'y'.repeat(5000)),
    fc.string({
      maxLength: 300,
      unit: fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)),
    }),
  )
  const block = fc.record({
    sizes: fc.array(fc.constantFrom(0, 31, 64, 200, 1000, 4095, 4096, 70_000), { maxLength: 3 }),
    fields: fc.array(fc.tuple(name, value), { maxLength: 12 }),
  })
  fc.assert(
    fc.property(fc.array(block, { maxLength: 20 }), blocks => {
      const [encoder, decoder] = [new HeaderEncoder(), new HeaderDecoder()]
      for (const { sizes, fields } of blocks) {
        for (const size of sizes) encoder.resize(size)
        const read = decode(decoder, encode(encoder, fields))
        t.strictSame(
          read,
          fields.map(([name, value]) => [name.toLowerCase(), value]),
        )
      }
    }),
    { numRuns: 300 },
  )
})
