import fc from 'fast-check'
import t from 'tap'
import { MessageFinder } from '../../../gateway/forward/message-finder.js'
import { BINARY, CLOSE, CONTINUATION, frame, PING, TEXT } from '../../helpers/web-sockets.js'

/** The frames of one message, with control frames between its fragments. */
const message = fc
  .record({
    lengths: fc.array(fc.oneof(fc.nat(300), fc.constantFrom(125, 126, 65_535, 65_536)), {
      minLength: 1,
      maxLength: 4,
    }),
    opcode: fc.constantFrom(TEXT, BINARY),
    bits: fc.constantFrom(0, 0x40),
    pings: fc.boolean(),
  })
  .map(({ lengths, opcode, bits, pings }) =>
    lengths.flatMap((length, i) => {
      const final = i === lengths.length - 1
      const one = frame(i === 0 ? opcode : CONTINUATION, Buffer.alloc(length, 0x81), {
        final,
        bits: i === 0 ? bits : 0,
      })
      return pings ? [one, frame(PING, 'now')] : [one]
    }),
  )

t.test('messages are found whatever pieces they come in', async () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 6 }), fc.array(fc.nat(400)), (messages, cuts) => {
      const expected: number[] = []
      let total = 0
      for (const frames of messages) {
        expected.push(total)
        for (const { length } of frames) total += length
      }
      const bytes = Buffer.concat(messages.flat())
      const finder = new MessageFinder()
      const found: number[] = []
      let at = 0
      for (const size of [...cuts, bytes.length]) {
        const piece = bytes.subarray(at, at + size)
        const { starts, end, fault } = finder.find(piece)
        if (fault !== undefined || end > piece.length) return false
        found.push(...starts.map(start => at + start))
        at += piece.length
      }
      return JSON.stringify(found) === JSON.stringify(expected)
    }),
    { numRuns: 300 },
  )
})

t.test('nothing after a malformed frame is looked at', async t => {
  const finder = new MessageFinder()
  const good = frame(TEXT, 'good')
  const found = finder.find(Buffer.concat([good, frame(7), frame(TEXT, 'hidden')]))
  t.same(found, { starts: [0], end: good.length, fault: 'an unknown opcode' })
})

t.test('a frame whose header has not ended ends nothing', async t => {
  const finder = new MessageFinder()
  const bytes = Buffer.concat([frame(PING), frame(BINARY, Buffer.alloc(70_000))])
  t.same(finder.find(bytes.subarray(0, 8)), { starts: [], end: 6 })
  t.same(finder.find(bytes.subarray(8, 15)), { starts: [], end: -2 })
  t.same(finder.find(bytes.subarray(15)), { starts: [-9], end: bytes.length - 15 })
  t.same(finder.find(frame(CLOSE)), { starts: [], end: 6 })
})
