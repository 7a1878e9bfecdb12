/** Uploads in tiny pieces to an upstream that does not read: what waits for it takes little more than its bytes. */
import { Socket } from 'node:net'
import t from 'tap'
import { RequestWriter } from '../../../gateway/http1/request-writer.js'

t.test('pieces of text that have to wait are kept as bytes, not as the pieces', async t => {
  const written: (Buffer | string)[] = []
  const socket = Object.assign(new Socket(), {
    write(piece: Buffer | string) {
      written.push(piece)
      return false
    },
  })
  const writer = new RequestWriter(socket)
  writer.begin('HEAD\r\n\r\n', { kind: 'chunked', bytes: 0 })
  writer.flush()
  Object.defineProperty(socket, 'writableLength', { value: 1 })
  for (const byte of 'ab') writer.write(Buffer.from(byte))
  writer.flush()
  t.same(written, ['HEAD\r\n\r\n', Buffer.from('1\r\na\r\n1\r\nb\r\n')])
})
