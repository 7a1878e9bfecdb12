/** The reader of request bodies: its limits of time and memory. */
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import fc from 'fast-check'
import t from 'tap'
import { Budget, readBody } from '../../../services/http/body.js'

/** A request whose body the test sends, and the end of its response. */
function exchange(headers: Record<string, string> = {}) {
  const stream = new PassThrough()
  const response = new EventEmitter()
  const body = readBody(
    Object.assign(stream, { headers }) as unknown as IncomingMessage,
    response as ServerResponse,
    '203.0.113.7',
  )
  body.catch(() => undefined)
  return { stream, body, end: () => response.emit('close') }
}

t.test('a body arrives whole, in whatever pieces', async t => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 9000 }), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(pieces, async pieces => {
      const { stream, body, end } = exchange()
      for (const piece of pieces) stream.write(piece)
      stream.end()
      t.ok(Buffer.concat(pieces).equals(await body))
      end()
    }),
    { numRuns: 50 },
  )
})

t.test('a body that trickles is given up after 30 seconds', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { stream, body } = exchange()
  for (let second = 0; second < 29; second++) {
    stream.write('a')
    mock.timers.tick(1000)
  }
  mock.timers.tick(1001)
  await t.rejects(body, { status: 408, message: 'The body took longer than 30 seconds.' })
})

t.test('a body that is cut off, or longer than announced, ends the reading', async t => {
  const cut = exchange({ 'content-length': '10' })
  cut.stream.write('half')
  cut.stream.destroy()
  await t.rejects(cut.body, { message: 'The body was cut off.' })
  const long = exchange()
  long.stream.write(Buffer.alloc(1024 * 1024 + 1))
  await t.rejects(long.body, { message: 'The body is larger than 1 MiB.' })
})

t.test('what is given back is free again, and nobody gets more than there is', t => {
  const step = fc.record({
    client: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.integer({ min: 0, max: 30 }),
    back: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const budget = new Budget(50, 20)
      const held: { client: string; bytes: number }[] = []
      const sum = (of: readonly { bytes: number }[]) => of.reduce((total, { bytes }) => total + bytes, 0)
      for (const { client, bytes, back } of steps) {
        const own = held.filter(each => each.client === client)
        const fits = sum(held) + bytes <= 50 && sum(own) + bytes <= 20
        t.equal(budget.take(client, bytes), fits)
        if (fits) held.push({ client, bytes })
        const first = back ? held.shift() : undefined
        if (first) budget.giveBack(first.client, first.bytes)
      }
    }),
  )
  t.end()
})
