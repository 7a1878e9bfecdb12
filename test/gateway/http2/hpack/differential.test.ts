/**
 * Our header compression against that of Node's HTTP/2 (nghttp2), over a socket: each end reads what the other has
 * written, while the tables fill, evict and change their sizes. `MESSAGES` and `SEED` make a longer or another run.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2'
import fc from 'fast-check'
import t from 'tap'
import { type Field, nodeAsClient, nodeAsServer, type OurEnd, pairs } from './node-coder.js'

const MESSAGES = Number(process.env.MESSAGES ?? 1000)
const SEED = Number(process.env.SEED ?? 1)

t.setTimeout(60_000 + MESSAGES * 10)

/** Names that Node takes as they are: no two of a kind in one message, and none with a meaning of its own. */
const name = fc.oneof(
  fc.constantFrom(
    'accept',
    'user-agent',
    'x-a',
    'x-b',
    'x-c',
    'etag',
    'vary',
    'x-request-id',
    'cache-control',
  ),
  fc.constantFrom('authorization', 'cookie'),
  fc.stringMatching(/^x-[a-z0-9]{1,60}$/),
)
const byte = fc.integer({ min: 0xa1, max: 0xff }).map(code => String.fromCharCode(code))
/** A field's value, without blanks around it, which Node would strip. */
const value = fc.oneof(
  fc.constantFrom('a', 'b', 'gzip, deflate', 'no-cache', '', 'x'.repeat(900), 'y'.repeat(1500)),
  // Where the length takes another byte.
  fc.constantFrom(126, 127, 128, 254, 255, 256).map(length => '~'.repeat(length)),
  fc.string({ maxLength: 200 }).map(text => text.trim()),
  fc.string({ maxLength: 60, unit: byte }),
  // Short codes around a long one: Node uses the Huffman code only where that is shorter.
  fc.oneof(byte, fc.string({ minLength: 1, maxLength: 1 })).map(rare => `${'e'.repeat(60)}${rare}e`),
)
const fieldList: fc.Arbitrary<Field[]> = fc.uniqueArray(fc.tuple(name, value), {
  maxLength: 12,
  selector: ([name]) => name,
})
const tableSize = fc.constantFrom(0, 1, 32, 100, 500, 4095, 4096)
const message = fc.record({
  request: fieldList,
  response: fieldList,
  /** Sizes that the reader offers before the message: mostly none. */
  sizes: fc.oneof(
    { weight: 8, arbitrary: fc.constant([]) },
    fc.array(tableSize, { minLength: 1, maxLength: 2 }),
  ),
})
const messages = () => fc.sample(message, { numRuns: MESSAGES, seed: SEED })

const TARGET: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'acme.example'],
  [':path', '/v1/orders'],
]

const sorted = (fields: readonly Field[]): Field[] => [...fields].sort(([a], [b]) => (a < b ? -1 : 1))

async function nextBlock(ours: OurEnd): Promise<Field[]> {
  const [, fields] = (await once(ours, 'block')) as [number, Field[]]
  return fields
}

t.test('what we write as a client Node reads, and what Node answers we read', async t => {
  let toSend: readonly Field[] = []
  let seen: Field[] = []
  const { ours, session } = await nodeAsServer(t, (read, respond) => {
    seen = read
    respond(toSend)
  })
  let stream = 1
  for (const { request, response, sizes } of messages()) {
    toSend = response
    for (const size of sizes) {
      session.settings({ headerTableSize: size })
      await once(ours, 'settings')
    }
    const answer = nextBlock(ours)
    ours.write(stream, [...TARGET, ...request])
    const read = await answer
    assert.deepEqual(seen, [...TARGET, ...request], `Node reads request ${stream}`)
    assert.deepEqual(read, [[':status', '200'], ...response], `we read response ${stream}`)
    stream += 2
  }
  t.equal(stream, 1 + 2 * MESSAGES)
})

t.test('what Node writes as a client we read, and what we answer Node reads', async t => {
  const { ours, session } = await nodeAsClient(t)
  let done = 0
  for (const { request, response, sizes } of messages()) {
    for (const size of sizes) {
      const acknowledged = once(session, 'remoteSettings')
      ours.offerTable(size)
      await acknowledged
    }
    const headers: OutgoingHttpHeaders = {
      ...Object.fromEntries([...TARGET, ...request]),
      [sensitiveHeaders]: done % 3 === 0 ? ['x-a', 'etag'] : [],
    }
    const arrived = once(ours, 'block') as Promise<[number, Field[]]>
    const stream = session.request(headers, { endStream: true })
    const [id, read] = await arrived
    const sent = response.map(([name, value]): Field => [name.toUpperCase(), value])
    const answered = once(stream, 'response') as Promise<[unknown, unknown, string[]]>
    const status = done % 2 === 0 ? '200' : '418'
    ours.write(id, [[':status', status], ...sent])
    const [, , raw] = await answered
    stream.resume()
    const count = TARGET.length
    assert.deepEqual(sorted(read.slice(0, count)), sorted(TARGET), `we read the target of request ${id}`)
    assert.deepEqual(read.slice(count), request, `we read request ${id}`)
    assert.deepEqual(pairs(raw), [[':status', status], ...response], `Node reads response ${id}`)
    done += 1
  }
  t.equal(done, MESSAGES)
})
