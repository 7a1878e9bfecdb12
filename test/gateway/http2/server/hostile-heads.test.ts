/** Header blocks that are attacks: too many CONTINUATION frames, too many fields, and abuse of header compression. */
import t, { type Test } from 'tap'
import {
  COMPRESSION_ERROR,
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  fields,
  frame,
  getFrame,
  HEADERS,
  hpackInteger,
  hpackText,
  requestFields,
} from '../../listen/frames.js'
import { ask, onBothWires, openSession } from '../../listen/http2-scene.js'
import { endOf, play, type Target, target } from './hostile-scene.js'

const NONE = Buffer.alloc(0)
const GET = requestFields('/')
/** A field that is put into the table (RFC 7541 section 6.2.1). */
const inserted = (name: string, value: string) =>
  Buffer.concat([Buffer.from([0x40]), hpackText(name), hpackText(value)])
/** The field that was put into the table last. */
const LAST = 0xbe
/** A head in frames of at most 16,000 bytes. */
function headFrames(stream: number, block: Buffer): Buffer {
  const size = 16_000
  const count = Math.ceil(block.length / size)
  return Buffer.concat(
    Array.from({ length: count }, (_, i) =>
      frame(
        i === 0 ? HEADERS : CONTINUATION,
        (i === 0 ? END_STREAM : 0) | (i === count - 1 ? END_HEADERS : 0),
        stream,
        block.subarray(i * size, (i + 1) * size),
      ),
    ),
  )
}

/** Blocks that cannot be decoded (RFC 7541 section 5 and 6), each behind a complete request. */
const UNDECODABLE: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['the index 0', Buffer.from([0x80])],
  ['an index beyond the table', hpackInteger(0x80, 0x7f, 500)],
  ['an index of 64 bits', Buffer.from([0xff, ...Array<number>(9).fill(0xff), 1])],
  ['an integer without end', Buffer.from([0xff, ...Array<number>(60).fill(0x80)])],
  ['the index of a name beyond the table', Buffer.concat([hpackInteger(0x40, 0x3f, 500), hpackText('a')])],
  [
    'a text longer than the block',
    Buffer.concat([Buffer.from([0]), hpackText('x'), hpackInteger(0, 0x7f, 9)]),
  ],
  ['a field without a value', Buffer.concat([Buffer.from([0]), hpackText('x')])],
  ['a Huffman code with the end of string', Buffer.from([0, 1, 0x78, 0x84, 0xff, 0xff, 0xff, 0xff])],
  ['Huffman padding of a byte', Buffer.from([0, 1, 0x78, 0x82, 0x1f, 0xff])],
  ['Huffman padding of zeros', Buffer.from([0, 1, 0x78, 0x81, 0x18])],
  ['a table size behind a field', Buffer.from([0x20])],
]

/** A connection that must end with one of the codes, by then without a request upstream. */
async function assertEnd(t: Test, place: Target, bytes: Buffer, codes: readonly number[]): Promise<void> {
  const client = await place.hostile(t)
  const before = place.seen.length
  client.send(bytes)
  t.ok(await endOf(client), 'the connection ends')
  if (place.wire === 'own') t.ok(codes.includes(client.goaway as number), `error code ${client.goaway}`)
  t.same(place.seen.slice(before), [])
  await place.serve()
}

onBothWires(t, (t, { wire, certificate }) => {
  t.test('a connection ends for', async t => {
    const place = await target(t, certificate, wire)
    for (const [what, bytes] of UNDECODABLE) {
      t.test(what, t => assertEnd(t, place, headFrames(1, Buffer.concat([GET, bytes])), [COMPRESSION_ERROR]))
    }

    t.test('a table larger than agreed', async t => {
      const bytes = headFrames(1, Buffer.concat([hpackInteger(0x20, 0x1f, 4_097), GET]))
      await assertEnd(t, place, bytes, [COMPRESSION_ERROR])
    })

    t.test('thousands of changes of the table’s size', async t => {
      const block = Buffer.concat([Buffer.alloc(15_000, 0x20), GET])
      const part = (i: number) => headFrames(2 * i + 1, block)
      const { hasEnded, code } = await play(place, await place.hostile(t), { part, most: 300, together: 5 })
      t.ok(hasEnded || wire === 'node')
      if (wire === 'own') t.equal(code, COMPRESSION_ERROR)
    })

    for (const [what, size] of [
      ['a flood of CONTINUATION frames', 100],
      ['a flood of empty CONTINUATION frames', 0],
      ['a flood of large CONTINUATION frames', 16_000],
    ] as const) {
      t.test(what, async t => {
        const filler = fields([['x-a', 'a'.repeat(Math.max(0, size - 8))]])
        const attack = {
          begin: frame(HEADERS, END_STREAM, 1, GET),
          part: () => frame(CONTINUATION, 0, 1, size === 0 ? NONE : filler),
          most: 5_000,
          together: 20,
        }
        const { hasEnded, code, sent } = await play(place, await place.hostile(t), attack)
        t.ok(hasEnded)
        if (wire === 'own') {
          t.equal(code, ENHANCE_YOUR_CALM)
          t.ok(sent <= 200, `it is noticed after ${sent}`)
        }
      })
    }

    t.test('bytes that stand for thousands of times as many (HPACK bomb)', async t => {
      const before = place.seen.length
      const first = Buffer.concat([GET, inserted('x', 'a'.repeat(3_968))])
      const bomb = Buffer.concat([GET, Buffer.alloc(16_000, LAST)])
      const part = (i: number) => headFrames(2 * i + 1, i === 0 ? first : bomb)
      const { hasEnded, code, sent } = await play(place, await place.hostile(t), {
        part,
        most: 400,
        together: 4,
      })
      t.ok(hasEnded)
      if (wire === 'own') {
        t.equal(code, ENHANCE_YOUR_CALM)
        t.ok(sent <= 100, `it is noticed after ${sent}`)
      }
      t.ok(place.seen.length - before <= 1, 'only the first is a request')
    })

    t.test('thousands of small fields in each request', async t => {
      const before = place.seen.length
      const block = Buffer.concat([GET, Buffer.alloc(15_000, 0x90)])
      const part = (i: number) => headFrames(2 * i + 1, block)
      const { hasEnded } = await play(place, await place.hostile(t), { part, most: 1_000, together: 10 })
      t.ok(hasEnded)
      t.equal(place.seen.length, before)
    })

    t.test('fields without a name in each request', async t => {
      const before = place.seen.length
      const block = Buffer.concat([GET, Buffer.from([0, 0, 0])])
      const part = (i: number) => headFrames(2 * i + 1, block)
      const { hasEnded } = await play(place, await place.hostile(t), { part, most: 2_000, together: 20 })
      t.ok(hasEnded)
      if (wire === 'own') t.equal(place.seen.length, before)
    })
  })

  t.test('a head', async t => {
    const place = await target(t, certificate, wire)

    t.test('may put into the table as much as it likes, over and over', async t => {
      const client = await place.hostile(t)
      const large = Buffer.concat(Array.from({ length: 8 }, (_, i) => inserted(`x-${i}`, 'v'.repeat(1_200))))
      for (let stream = 1; stream < 100; stream += 2) {
        client.send(headFrames(stream, Buffer.concat([GET, large])))
        await client.end(stream)
      }
      t.same([...client.statuses().values()], Array(50).fill([200]))
    })

    t.test('may come in a few CONTINUATION frames', async t => {
      const client = await place.hostile(t)
      const third = Math.ceil(GET.length / 3)
      client.send(
        frame(HEADERS, END_STREAM, 1, GET.subarray(0, third)),
        frame(CONTINUATION, 0, 1, GET.subarray(third, 2 * third)),
        frame(CONTINUATION, 0, 1, NONE),
        frame(CONTINUATION, END_HEADERS, 1, GET.subarray(2 * third)),
      )
      await client.end(1)
      t.same(client.statuses().get(1), [200])
    })

    t.test('that is too large gets a response', async t => {
      const client = await place.hostile(t)
      const before = place.seen.length
      const large = fields(Array.from({ length: 20 }, (_, i) => [`x-${i}`, 'a'.repeat(900)]))
      client.send(headFrames(1, Buffer.concat([GET, large])), getFrame(3))
      await client.end(1)
      await client.end(3)
      t.same([...client.statuses()].sort(), [
        [1, [431]],
        [3, [200]],
      ])
      t.equal(place.seen.length - before, 1)
    })

    t.test('that is much too large is refused, and the connection goes on with the same table', async t => {
      const client = await place.hostile(t)
      const before = place.seen.length
      const large = fields(Array.from({ length: 300 }, (_, i) => [`x-${i}`, 'a'.repeat(90)]))
      client.send(headFrames(1, Buffer.concat([GET, large, inserted('x-last', 'kept')])))
      await client.end(1)
      t.equal(client.resetOf(1), ENHANCE_YOUR_CALM)
      client.send(headFrames(3, Buffer.concat([GET, Buffer.from([LAST])])), getFrame(5))
      await client.end(3)
      t.same(client.statuses().get(3), [200])
      t.match(
        place.seen.slice(before).map(({ fields }) => fields.join(' ')),
        [/x-last kept/],
      )
    })

    t.test('of a response is readable however often the client changes the size of its table', async t => {
      const session = await openSession(t, place.gateway.url, certificate)
      for (const headerTableSize of [0, 4_096, 100, 65_536, 0, 50, 4_096, 33]) {
        session.settings({ headerTableSize })
        const answers = await Promise.all(
          Array.from({ length: 10 }, (_, i) => ask(session, { ':path': `/bytes/${i}` })),
        )
        t.same(
          answers.map(({ status, headers }) => [status, headers['content-length']]),
          Array.from({ length: 10 }, (_, i) => [200, String(i)]),
        )
      }
    })
  })
})
