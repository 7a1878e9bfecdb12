/** The frames of a connection, in whatever pieces they arrive. */
import fc from 'fast-check'
import t from 'tap'
import { FrameReader } from '../../../gateway/http2/frame-reader.js'
import { DATA, frame, PREFACE } from '../listen/frames.js'

/** What a reader hands over, with the content of each DATA frame joined. */
function read(pieces: readonly Buffer[]): string[] {
  const seen: string[] = []
  let content: Buffer[] = []
  const reader = new FrameReader(
    {
      onFrame: (type, flags, stream, bytes, at, end) =>
        seen.push(`${type} ${flags} ${stream} ${bytes.toString('hex', at, end)}`),
      onData: (flags, stream, length) => seen.push(`DATA ${flags} ${stream} ${length}`),
      onContent: piece => content.push(piece),
      onDataEnd() {
        seen.push(Buffer.concat(content).toString('hex'))
        content = []
      },
    },
    true,
  )
  for (const piece of pieces) reader.push(piece)
  return seen
}

/** `bytes` in pieces of the given sizes. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...pieces, bytes.subarray(at)]
}

const plain = fc
  .tuple(fc.nat(255), fc.nat(255), fc.nat(0x7fffffff), fc.uint8Array({ maxLength: 3_000 }))
  .filter(([type]) => type !== DATA)
  .map(([type, flags, stream, payload]) => frame(type, flags, stream, Buffer.from(payload)))
const data = fc
  .tuple(fc.constantFrom(0, 1), fc.nat(9), fc.uint8Array({ maxLength: 300 }), fc.option(fc.nat(255)))
  .map(([flags, stream, content, padding]) => {
    if (padding === null) return frame(DATA, flags, stream, Buffer.from(content))
    const payload = [Buffer.from([padding]), Buffer.from(content), Buffer.alloc(padding)]
    return frame(DATA, flags | 0x8, stream, Buffer.concat(payload))
  })

t.test('the same frames are read in whatever pieces they arrive', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(plain, data), { maxLength: 6 }),
      fc.array(fc.oneof(fc.nat(12), fc.nat(2_000)), { maxLength: 30 }),
      (frames, sizes) => {
        const bytes = Buffer.concat([Buffer.from(PREFACE), ...frames])
        const whole = read([bytes])
        const inPieces = read(cut(bytes, sizes))
        return whole.length >= frames.length && JSON.stringify(inPieces) === JSON.stringify(whole)
      },
    ),
    { numRuns: 300 },
  )
})

t.test('the largest frame is read when its bytes arrive one by one', async t => {
  const bytes = Buffer.concat([Buffer.from(PREFACE), frame(1, 4, 1, Buffer.alloc(16_384))])
  t.equal(read(Array.from(bytes, byte => Buffer.from([byte]))).length, 1)
})
