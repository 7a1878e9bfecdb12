/**
 * HTTP/2 fields that RFC 9113 section 8.2.1 calls malformed. With `http2: own` they reset the stream. nghttp2 drops such a field before Node's http2 passes the
 * request on, and Node has no event or option for it, so the gateway cannot refuse the request. This test shows what
 * happens to each; when a release of Node changes it, the test fails, and docs/proxy-conformance.md needs an update.
 */
import t from 'tap'
import { OK, type RawMessage } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  FrameClient,
  frame,
  HEADERS,
  RST_STREAM,
  requestFields,
} from './frames.js'
import { onBothWires } from './http2-scene.js'

type Field = readonly [name: string, value: string]

/** Dropped by Node. */
const DROPPED: readonly Field[] = [
  ['x-evil', 'a\r\nx-injected: 1'],
  ['x-evil', 'a\nb'],
  ['x-evil', 'a\0b'],
  ['x-evil', 'a\x01b'],
  ['x-evil', 'a\x7fb'],
  ['x-evil', ' a'],
  ['x-evil', 'a\t'],
  ['x evil', 'a'],
  ['x-evil:', 'a'],
  ['x-evil\r\nx-injected', 'a'],
  ['', 'evil'],
  ['cookie', 'evil=1\r\nx-injected: 1'],
]
const RESET: readonly Field[] = [
  ['X-Evil', 'a'],
  [':evil', 'a'],
  ['connection', 'evil'],
  ['transfer-encoding', 'evil'],
  ['content-length', '1x'],
]

onBothWires(t, (t, { wire, scene }) => {
  t.test('a malformed HTTP/2 field never reaches the upstream in any form', async t => {
    const seen: RawMessage[] = []
    const { port } = await scene(t, async peer => {
      for (;;) {
        seen.push(await peer.message())
        peer.send(OK)
      }
    })
    /** What happens to a request with this field and a body of three bytes. */
    const fateOf = async (field: Field): Promise<string> => {
      const client = await FrameClient.open(t, port)
      const before = seen.length
      const head = requestFields('/', [['x-good', '1'], field, ['x-also-good', '2']], 'POST')
      client.send(frame(HEADERS, END_HEADERS, 1, head), frame(DATA, END_STREAM, 1, Buffer.from('abc')))
      const last = await waitUntil('an answer', () =>
        client.frames.find(({ type, stream }) => stream === 1 && (type === HEADERS || type === RST_STREAM)),
      )
      client.socket.destroy()
      const passed = JSON.stringify(seen.slice(before))
      if (last.type === RST_STREAM) return passed === '[]' ? 'reset' : passed
      t.match(passed, /x-good.*x-also-good.*abc/, 'the rest of the request arrives')
      return /evil|injected/i.test(passed) ? passed : 'dropped'
    }
    const fate = wire === 'own' ? 'reset' : 'dropped'
    for (const field of DROPPED) t.equal(await fateOf(field), fate, JSON.stringify(field))
    for (const field of RESET) t.equal(await fateOf(field), 'reset', JSON.stringify(field))
    // Newer versions of Node reset the stream; otherwise the body keeps its own framing.
    t.match(await fateOf(['content-length', ' 3']), /^(dropped|reset)$/)
  })
})
