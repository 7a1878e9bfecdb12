/** Whatever an upstream sends, its client gets a response or a cut, and the gateway goes on. */
import fc from 'fast-check'
import t from 'tap'
import { waitUntil } from '../../../helpers/wait.js'
import { code, fields, frame, SETTINGS } from '../../listen/frames.js'
import { type FramePeer, frameUpstream, head, whole } from './frame-upstream.js'
import { ask } from './http.js'
import { h2cGateway } from './upstream.js'

const RUNS = Number(process.env.RUNS ?? 150)

const stream = fc.constantFrom(0, 1, 1, 1, 1, 2, 3, 5, 0x7fff_ffff)
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes)),
  fc.nat(0xffff_ffff).map(code),
  fc.constantFrom(
    Buffer.alloc(0),
    Buffer.alloc(8),
    Buffer.alloc(16_384, 1),
    fields([[':status', '200']]),
    fields([[':status', '103']]),
    fields([['x-a', '1']]),
    fields([
      [':status', '200'],
      ['content-length', '5'],
    ]),
  ),
)
const anyFrame = fc
  .tuple(
    fc.oneof(fc.nat(10), fc.constantFrom(0, 1, 1, 9)),
    fc.constantFrom(0, 1, 4, 5, 8, 0x20, 0xff),
    stream,
    payload,
  )
  .map(([type, flags, id, bytes]) => frame(type, flags, id, bytes))
const likely = fc.constantFrom(
  head(1),
  head(1, 103),
  head(1, 204),
  whole(1),
  frame(0, 0, 1, Buffer.from('abc')),
  frame(0, 1, 1, Buffer.from('end')),
  frame(SETTINGS, 0, 0),
)
const sent = fc.array(fc.oneof(likely, anyFrame, fc.uint8Array({ maxLength: 12 }).map(Buffer.from)), {
  minLength: 1,
  maxLength: 8,
})

t.test('any frames of an upstream', async t => {
  let script: readonly Buffer[] = []
  const play = async (peer: FramePeer): Promise<void> => {
    await peer.request()
    peer.send(...script)
    // What is cut short would otherwise be waited for.
    setTimeout(() => peer.socket.end(), 20)
  }
  const upstream = await frameUpstream(t, play)
  const gateway = await h2cGateway(t, upstream.url, { timeouts: '{ connect: 1s, head: 500ms, idle: 500ms }' })
  const seen = new Map<number | 'cut', number>()
  await fc.assert(
    fc.asyncProperty(sent, fc.constantFrom('GET', 'POST', 'HEAD'), async (frames, method) => {
      script = frames
      const outcome = await ask(gateway.url, { method, ...(method === 'POST' && { body: 'abcdef' }) }).then(
        ({ status }) => status,
        () => 'cut' as const,
      )
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      return outcome === 'cut' || [200, 204, 502, 504].includes(outcome)
    }),
    { numRuns: RUNS },
  )
  t.ok((seen.get(502) ?? 0) > 5 && (seen.get(200) ?? 0) + (seen.get(204) ?? 0) > 5, JSON.stringify([...seen]))
  script = [whole(1)]
  // A connection that is still there may have something from before in store.
  await waitUntil('a request that is served', async () => (await ask(gateway.url)).status === 200)
  t.same(
    gateway.lines.filter(({ level }) => level === 'error'),
    [],
  )
})
