import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { CountedMessages } from '../../../gateway/forward/counted-messages.js'
import type { Admission, MessageGate } from '../../../gateway/verdict.js'
import { waitUntil } from '../../helpers/wait.js'
import { CONTINUATION, frame, PING, TEXT } from '../../helpers/web-sockets.js'

/** Streams in place of both sockets: they keep the pieces as they are written. */
function joined(gate: MessageGate, highWaterMark?: number) {
  const client = new PassThrough()
  const upstream = new PassThrough({ highWaterMark })
  const passed: Buffer[] = []
  const refused: [status: number, reason: string][] = []
  upstream.on('data', bytes => passed.push(bytes))
  const counted = new CountedMessages(
    gate,
    client as unknown as Socket,
    upstream as unknown as Socket,
    (...why) => refused.push(why),
  )
  return { client, upstream, refused, counted, bytes: () => Buffer.concat(passed) }
}

/** Admits as `answers` say, then everything; asynchronously where a number is odd. */
class ScriptedGate implements MessageGate {
  admitted = 0
  refusals = 0
  readonly #answers: number[]

  constructor(answers: readonly number[]) {
    this.#answers = [...answers]
  }

  admit(count: number): Admission | Promise<Admission> {
    const wanted = this.#answers.shift()
    const admitted = Math.min(count, wanted ?? count)
    this.admitted += admitted
    const admission = { admitted, waitMs: 1 }
    return wanted !== undefined && wanted % 2 === 1 ? Promise.resolve(admission) : admission
  }

  refuse() {
    this.refusals += 1
    return 'limited' as const
  }

  leave(): void {}
}

const message = fc
  .record({ lengths: fc.array(fc.nat(200), { minLength: 1, maxLength: 3 }), ping: fc.boolean() })
  .map(({ lengths, ping }) =>
    Buffer.concat([
      ...lengths.map((length, i) =>
        frame(i === 0 ? TEXT : CONTINUATION, Buffer.alloc(length, 0x81), {
          final: i === lengths.length - 1,
        }),
      ),
      ...(ping ? [frame(PING)] : []),
    ]),
  )

t.test(
  'any pieces, and any way of admitting them, pass the same bytes and count the same messages',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 40 }),
        fc.array(fc.nat(4), { maxLength: 6 }),
        fc.constantFrom(1, 64, undefined),
        async (messages, cuts, answers, highWaterMark) => {
          const gate = new ScriptedGate(answers)
          const { client, upstream, bytes, refused } = joined(gate, highWaterMark)
          const sent = Buffer.concat(messages)
          let at = 0
          for (const size of [...cuts, sent.length]) {
            if (at < sent.length) client.write(sent.subarray(at, at + size))
            at += size
          }
          client.end()
          await waitUntil('the end', () => upstream.readableEnded)
          return bytes().equals(sent) && gate.admitted === messages.length && refused.length === 0
        },
      ),
      { numRuns: 60 },
    )
  },
)

t.test('a message without room is refused after a second, and nothing of it passes', async t => {
  const gate = new ScriptedGate([1, ...Array(1_000).fill(0)])
  const { client, bytes, refused } = joined(gate)
  const since = performance.now()
  client.write(Buffer.concat([frame(TEXT, 'one'), frame(PING), frame(TEXT, 'two'), frame(PING)]))
  await waitUntil('the refusal', () => refused.length > 0)
  const ms = performance.now() - since
  t.ok(ms >= 990 && ms < 1_900, `${ms}`)
  t.same(refused, [[1008, 'too many messages']])
  t.equal(gate.refusals, 1)
  t.same(bytes(), Buffer.concat([frame(TEXT, 'one'), frame(PING)]))
})

t.test('the rest of an admitted message passes, although the next one is refused', async t => {
  const { client, bytes, refused } = joined(new ScriptedGate([1, ...Array(1_000).fill(0)]))
  const [one, two] = [frame(TEXT, 'one'), frame(TEXT, 'two')]
  client.write(one.subarray(0, 3))
  await new Promise(setImmediate)
  client.write(Buffer.concat([one.subarray(3), two]))
  await waitUntil('the refusal', () => refused.length > 0)
  t.same(bytes(), one)
})

t.test('a client that goes on sending while a message waits is not read', async t => {
  let admit = (_: Admission): void => {}
  const gate = {
    admit: () =>
      new Promise<Admission>(resolve => {
        admit = resolve
      }),
    refuse: () => 'limited' as const,
    leave() {},
  }
  const { client, counted, bytes } = joined(gate)
  client.write(frame(TEXT, 'one'))
  await waitUntil('the question', () => client.isPaused())
  while (client.write(Buffer.alloc(1_000))) {}
  t.equal(bytes().length, 0)
  counted.stop()
  admit({ admitted: 1 })
  await new Promise(setImmediate)
  t.equal(bytes().length, 0, 'once stopped, an answer changes nothing')
})

t.test('a malformed frame ends it with 1002, after everything before it', async t => {
  const { client, bytes, refused } = joined(new ScriptedGate([]))
  client.write(Buffer.concat([frame(TEXT, 'one'), frame(6, 'bad'), frame(TEXT, 'two')]))
  await waitUntil('the refusal', () => refused.length > 0)
  t.same(refused, [[1002, 'an unknown opcode']])
  t.same(bytes(), frame(TEXT, 'one'))
})

t.test('messages for an upstream that has ended its side are dropped', async t => {
  const { client, upstream, bytes } = joined(new ScriptedGate([]))
  upstream.on('error', error => t.fail(error.message))
  upstream.end()
  client.write(frame(TEXT, 'late'))
  await new Promise(setImmediate)
  t.equal(bytes().length, 0)
})
