/**
 * Connections of clients that send anything: none fails, and all that was begun comes to an end.
 * `RUNS=100000 node dist/test/gateway/http2/server/random-frames.test.js` for a long run.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { Http2ServerConnections } from '../../../../gateway/http2/server/connections.js'
import type { IncomingRequest, OutgoingResponse } from '../../../../gateway/message.js'
import { fields, frame, PREFACE, requestFields } from '../../listen/frames.js'

const RUNS = Number(process.env.RUNS ?? 1_000)

t.setTimeout(30_000 + RUNS * 5)

const stream = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(1, 3, 5, 7) },
  fc.constantFrom(0, 2, 0x7fffffff),
)
const flags = fc.oneof(fc.constantFrom(0, 1, 4, 5, 0x8, 0x20), fc.nat(255))
const increment = fc.constantFrom(0, 1, 1_000, 65_535, 0x7fffffff).map(value => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
})
const setting = fc
  .tuple(
    fc.constantFrom(1, 2, 3, 4, 5, 6, 9),
    fc.constantFrom(0, 1, 100, 16_384, 65_536, 0x7fffffff, 0xffffffff),
  )
  .map(([id, value]) => {
    const bytes = Buffer.alloc(6)
    bytes.writeUInt16BE(id)
    bytes.writeUInt32BE(value, 2)
    return bytes
  })
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map(one => Buffer.from(one))
const head = fc
  .tuple(fc.constantFrom('GET', 'POST', 'HEAD'), fc.constantFrom([], [['content-length', '3']] as const))
  .map(([method, more]) => requestFields('/', more, method))
const payloadOf: Record<number, fc.Arbitrary<Buffer>> = {
  0: fc.oneof(bytes(40), fc.constant(Buffer.from('abc')), fc.constant(Buffer.alloc(16_384))),
  1: fc.oneof({ weight: 4, arbitrary: head }, fc.constant(fields([['x-late', '1']])), bytes(20)),
  2: bytes(6),
  3: increment,
  4: fc.oneof(
    fc.array(setting, { maxLength: 3 }).map(all => Buffer.concat(all)),
    bytes(7),
  ),
  6: fc.oneof(fc.constant(Buffer.alloc(8)), bytes(9)),
  7: fc.oneof(fc.constant(Buffer.alloc(8)), bytes(9)),
  8: increment,
  9: fc.oneof(head, bytes(20)),
}
const anyFrame = fc
  .constantFrom(0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10)
  .chain(type => fc.tuple(fc.constant(type), flags, stream, payloadOf[type] ?? bytes(20)))
  .map(([type, flag, id, payload]) => frame(type, flag, id, payload))

/** A frame that makes sense when `opened` requests have been opened before. */
type Sensible = (opened: number) => Buffer
const open = fc.tuple(head, fc.constantFrom(4, 5)).map(
  ([block, flag]): Sensible =>
    opened =>
      frame(1, flag, 2 * opened + 1, block),
)
const onOpened = (type: number, payload: fc.Arbitrary<Buffer>, flag: fc.Arbitrary<number> = fc.constant(0)) =>
  fc.tuple(payload, flag, fc.nat(3)).map(
    ([bytes, flags, back]): Sensible =>
      opened =>
        opened === 0 ? Buffer.alloc(0) : frame(type, flags, Math.max(1, 2 * (opened - back) - 1), bytes),
  )
const small = fc.constantFrom(1, 1_000, 65_535).map(value => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
})
const window = fc.constantFrom(0, 1, 65_536).map(value => {
  const bytes = Buffer.from([0, 4, 0, 0, 0, 0])
  bytes.writeUInt32BE(value, 2)
  return bytes
})
const next = fc.oneof(
  { weight: 8, arbitrary: open.map(make => ({ make, opens: true })) },
  {
    weight: 12,
    arbitrary: fc
      .oneof(
        onOpened(0, fc.constantFrom(Buffer.from('abc'), Buffer.alloc(9_000)), fc.constantFrom(0, 1)),
        onOpened(3, small),
        onOpened(8, small),
        onOpened(1, fc.constant(fields([['x-late', '1']])), fc.constant(5)),
        small.map(
          (bytes): Sensible =>
            () =>
              frame(8, 0, 0, bytes),
        ),
        window.map(
          (bytes): Sensible =>
            () =>
              frame(4, 0, 0, bytes),
        ),
      )
      .map(make => ({ make, opens: false })),
  },
  { weight: 1, arbitrary: anyFrame.map(bytes => ({ make: (() => bytes) as Sensible, opens: false })) },
)
const conversation = fc.array(next, { minLength: 1, maxLength: 20 }).map(steps => {
  let opened = 0
  return steps.map(({ make, opens }) => {
    const bytes = make(opened)
    if (opens) opened++
    return bytes
  })
})

/** What a handler does with a request. */
type Manner = 'at once' | 'later' | 'after the body' | 'in parts' | 'cuts' | 'throws' | 'never'
const manner = fc.constantFrom<Manner>(
  'at once',
  'later',
  'after the body',
  'in parts',
  'cuts',
  'throws',
  'never',
)

const scenario = fc.record({
  frames: conversation,
  cut: fc.nat(2_000),
  manners: fc.array(manner, { minLength: 1, maxLength: 4 }),
  reads: fc.boolean(),
})

interface Ends {
  readonly begun: number
  readonly closed: number
  readonly reading: number
  readonly read: number
}

/** Serves in the given manners, and counts what ends. */
class Handler {
  begun = 0
  closed = 0
  reading = 0
  read = 0
  readonly #manners: readonly Manner[]

  constructor(manners: readonly Manner[]) {
    this.#manners = manners
  }

  get ends(): Ends {
    const { begun, closed, reading, read } = this
    return { begun, closed, reading, read }
  }

  request(req: IncomingRequest, res: OutgoingResponse): void {
    const how = this.#manners[this.begun % this.#manners.length]
    this.begun++
    res.watch({ onClose: () => this.closed++ })
    if (how === 'throws') throw new Error('as the test wants it')
    if (how === 'cuts') res.cut()
    if (how === 'never') return
    const answer = () => {
      res.writeHead(200, 'OK', ['content-type', 'text/plain'])
      if (how === 'in parts') for (let i = 0; i < 4; i++) res.write(Buffer.alloc(40_000))
      res.end('done', ['x-late', '1'])
    }
    if (how !== 'after the body' || req.body === undefined) {
      if (how === 'later') setImmediate(answer)
      else answer()
      return
    }
    this.reading++
    const done = () => this.read++
    const onEnd = () => {
      done()
      answer()
    }
    req.body.read({ onData() {}, onEnd, onAbort: done })
  }
}

t.test('whatever a client sends, no connection fails, and everything ends once', async t => {
  let requests = 0
  await fc.assert(
    fc.asyncProperty(scenario, async ({ frames, cut, manners, reads }) => {
      const handler = new Handler(manners)
      const failures: unknown[] = []
      let places = 0
      const all = new Http2ServerConnections(
        {
          request: (req, res) => handler.request(req, res),
          failed: error => failures.push(error),
        },
        { headTimeoutMs: 10_000, requestTimeoutMs: 10_000, keepAliveMs: 10_000 },
        () => ({
          take: () => ++places && 1,
          giveBack: count => (places -= count),
          carriesMany: false,
          countReset: () => true,
        }),
      )
      const socket = new Duplex({
        read() {},
        write: (_chunk, _encoding, done) => void (reads ? setImmediate(done) : undefined),
      })
      all.accept(socket as unknown as Socket, { address: '127.0.0.1', fingerprints: undefined })
      const sent = Buffer.concat([Buffer.from(PREFACE), frame(4, 0, 0), ...frames])
      // In two reads, of which the first ends anywhere in the frames.
      const first = PREFACE.length + 9 + cut
      socket.push(sent.subarray(0, first))
      await new Promise(setImmediate)
      if (!socket.readableEnded) socket.push(sent.subarray(first))
      for (let i = 0; i < 4; i++) await new Promise(setImmediate)
      socket.destroy()
      for (let i = 0; i < 3; i++) await new Promise(setImmediate)
      const unexpected = failures.filter(error => (error as Error).message !== 'as the test wants it')
      if (unexpected.length > 0) throw unexpected[0]
      const { begun, closed, reading, read } = handler.ends
      if (begun !== closed) throw new Error(`${closed} of ${begun} responses ended`)
      if (reading !== read) throw new Error(`${read} of ${reading} bodies ended`)
      if (places !== 0) throw new Error(`${places} places were not given back`)
      requests += begun
    }),
    { numRuns: RUNS },
  )
  t.ok(requests > RUNS / 4, `${requests} requests`)
})
