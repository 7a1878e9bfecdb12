/** What header compression keeps of what has passed: the tables of both ends, and little else. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { HeaderDecoder } from '../../../../gateway/http2/hpack/decoder.js'
import { HeaderEncoder } from '../../../../gateway/http2/hpack/encoder.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const CONNECTIONS = 100
const LIMITS = { fields: 100, bytes: 65_536 }

function memoryUsed(): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** What each of many connections keeps of what `use` has done with it, in bytes. */
function bytesPerConnection<Coder>(use: (i: number) => Coder): number {
  use(-1) // What is made once for all of them is not counted.
  const before = memoryUsed()
  const coders = Array.from({ length: CONNECTIONS }, (_, i) => use(i))
  return (memoryUsed() - before) / coders.length
}

t.test('an idle connection keeps neither its last block nor the buffer that its fields came in', async t => {
  const bytes = bytesPerConnection(() => {
    const decoder = new HeaderDecoder()
    const buffer = Buffer.allocUnsafeSlow(65_536)
    const block = Buffer.concat([Buffer.from([0x40, 1, 0x61, 30]), Buffer.alloc(30, 0x62)])
    buffer.set(block)
    decoder.decode(buffer.subarray(0, block.length), LIMITS)
    return decoder
  })
  t.ok(bytes < 10_000, `${bytes.toFixed(0)} bytes`)
})

t.test('a million empty entries leave a table of its size', async t => {
  const decoder = new HeaderDecoder()
  const block = Buffer.alloc(3 * 8000)
  for (let i = 0; i < block.length; i += 3) block[i] = 0x40
  decoder.decode(block, LIMITS)
  const before = memoryUsed()
  for (let i = 0; i < 125; i += 1) decoder.decode(block, LIMITS)
  const grown = memoryUsed() - before
  t.ok(grown < 500_000, `${grown} bytes`)
})

t.test('an encoder keeps the fields that its table has room for', async t => {
  const target = Buffer.alloc(2048)
  const bytes = bytesPerConnection(i => {
    const encoder = new HeaderEncoder()
    for (let name = 0; name < 120; name += 1)
      encoder.field(target, 0, `x-name-${name}`, `${i}-${name}`.padEnd(900, 'v'))
    return encoder
  })
  t.ok(bytes < 60_000, `${bytes.toFixed(0)} bytes`)
})

t.test('an encoder keeps no head that names and values are slices of', async t => {
  const target = Buffer.alloc(2048)
  const bytes = bytesPerConnection(i => {
    const encoder = new HeaderEncoder()
    for (const [from, name] of ['x-a-name-of-ours', 'X-Another-Name-Of-Ours', 'content-type'].entries()) {
      const head = Buffer.from(`${name}: a value of some length ${i} ${from}\r\n`.padEnd(60_000)).toString(
        'latin1',
      )
      encoder.field(target, 0, head.slice(0, name.length), head.slice(name.length + 2, name.length + 22))
    }
    return encoder
  })
  t.ok(bytes < 10_000, `${bytes.toFixed(0)} bytes`)
})
