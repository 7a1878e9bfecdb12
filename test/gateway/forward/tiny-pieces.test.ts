/** Bodies of very many small pieces: pieces share writes, instead of one write each. */
import type { Socket } from 'node:net'
import t from 'tap'
import { Relay } from '../../../gateway/forward/relay.js'
import { RequestWriter } from '../../../gateway/http1/request-writer.js'
import type { OutgoingResponse } from '../../../gateway/message.js'

const PIECES = 10_000
const pieces = Array.from({ length: PIECES }, (_, i) => Buffer.from(String(i % 10)))
const content = Buffer.concat(pieces).toString()

t.test('small pieces of an upload that arrive together share writes', async t => {
  const written: string[] = []
  const socket = { write: (text: string) => written.push(text) } as unknown as Socket
  const writer = new RequestWriter(socket)
  writer.begin('', { kind: 'chunked', bytes: 0 })
  writer.flush()
  for (const piece of pieces) writer.write(piece)
  await new Promise(setImmediate)
  t.ok(written.length < 10, `${written.length} writes`)
  t.equal(written.join('').replace(/1\r\n(.)\r\n/g, '$1'), content)
})

t.test('small pieces of a response that arrive together share writes', async t => {
  const written: string[] = []
  const res = {
    writeHead() {},
    write: (chunk: Buffer) => written.push(chunk.toString()) > 0,
    end: (last?: Buffer) => written.push(String(last ?? '')),
    limitReader() {},
  } as unknown as OutgoingResponse
  const relay = new Relay(res, { status: 200, reason: 'OK', fields: [] }, 1_000)
  for (const piece of pieces) relay.write(piece)
  relay.end([])
  t.ok(written.length < 10, `${written.length} writes`)
  t.equal(written.join(''), content)
})
