import t from 'tap'
import { readEvents, type StreamEvent } from '../../../gateway/ui/event-stream.js'

async function read(...chunks: string[]): Promise<(StreamEvent | undefined)[]> {
  const bytes = chunks.map(chunk => Buffer.from(chunk, 'latin1'))
  const events: (StreamEvent | undefined)[] = []
  for await (const event of readEvents(ReadableStream.from(bytes) as ReadableStream<Uint8Array>))
    events.push(event)
  return events
}

t.test('events are read wherever the network splits them', async t => {
  const text = Buffer.from('event: live\ndata: {"a":"é"}\n\n: alive\n\ndata: x\ndata: y\n\n').toString(
    'latin1',
  )
  const wanted = [{ event: 'live', data: '{"a":"é"}' }, undefined, { event: 'message', data: 'x\ny' }]
  t.same(await read(text), wanted)
  t.same(await read(...text), wanted)
})

t.test('an event that never ends is rejected', async t => {
  const chunk = 'x'.repeat(4 * 1024 * 1024)
  await t.rejects(read(chunk, chunk, chunk, chunk, chunk), /too long/)
  t.same(await read('data: cut'), [])
})
