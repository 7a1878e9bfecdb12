import fc from 'fast-check'
import t from 'tap'
import { FrameFollower } from '../../../gateway/forward/frames.js'

t.test('the ends of frames are found whatever pieces they come in', async () => {
  const frame = fc
    .record({
      length: fc.oneof(fc.nat(300), fc.constantFrom(125, 126, 65_535, 65_536)),
      masked: fc.boolean(),
    })
    .map(({ length, masked }) => {
      const mask = masked ? 0x80 : 0
      const extended = Buffer.alloc(length < 126 ? 0 : length < 65_536 ? 2 : 8)
      if (extended.length === 2) extended.writeUInt16BE(length)
      if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length))
      const marker = length < 126 ? length : length < 65_536 ? 126 : 127
      const body = Buffer.alloc(length + (masked ? 4 : 0), 0x81)
      return Buffer.concat([Buffer.from([0x82, mask | marker]), extended, body])
    })
  fc.assert(
    fc.property(fc.array(frame, { minLength: 1, maxLength: 6 }), fc.array(fc.nat(2_000)), (frames, cuts) => {
      const ends = new Set([0])
      let total = 0
      for (const { length } of frames) {
        total += length
        ends.add(total)
      }
      const bytes = Buffer.concat(frames)
      const follower = new FrameFollower()
      let at = 0
      for (const size of [...cuts, bytes.length]) {
        const piece = bytes.subarray(at, at + size)
        follower.pass(piece)
        at += piece.length
        if (follower.betweenFrames !== ends.has(at)) return false
      }
      return true
    }),
    { numRuns: 300 },
  )
})
