/** Frames of an HTTP/2 upload that nobody reads: few pieces in memory, and the same bytes. */
import { Readable } from 'node:stream'
import t from 'tap'
import { HeldFrames } from '../../../gateway/listen/stream-body.js'

function upload() {
  const stream = new Readable({ read() {} })
  const held = new HeldFrames(stream)
  const seen: string[] = []
  stream.on('data', (piece: Buffer) => seen.push(String(piece)))
  return { stream, held, seen, ended: new Promise(resolve => stream.once('end', resolve)) }
}

t.test('frames that nobody reads become one piece, before those that follow', async t => {
  const { stream, held, seen, ended } = upload()
  for (const byte of 'abcdef') t.notOk(stream.push(Buffer.from(byte)), 'no more is asked for')
  held.release()
  stream.push(Buffer.from('gh'))
  held.hold()
  for (const byte of 'ijk') stream.push(Buffer.from(byte))
  held.release()
  stream.push(null)
  await ended
  t.same(seen, ['abcdef', 'gh', 'ijk'])
})

t.test('an upload that ends while it is held is whole', async t => {
  const { stream, seen, ended } = upload()
  for (const byte of 'abc') stream.push(Buffer.from(byte))
  stream.push(null)
  await ended
  t.same(seen, ['abc'])
})
