/** What a client may send too much of: its connection ends with ENHANCE_YOUR_CALM, and the metrics count it by kind. */
import t from 'tap'
import { OK } from '../../../helpers/raw.js'
import { waitUntil } from '../../../helpers/wait.js'
import { answering } from '../../forward/gateway.js'
import {
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FrameClient,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { ask, onBothWires } from '../../listen/http2-scene.js'
import { FLOODS, times } from './flood-attacks.js'

const NOTHING = Buffer.alloc(0)
const WHOLE = END_HEADERS | END_STREAM

onBothWires(t, async (t, { wire, scene }) => {
  if (wire === 'node') return
  for (const { what, flood, bytes } of FLOODS) {
    t.test(`too many ${what} end the connection`, async t => {
      const { port, gateway, session, upstream } = await scene(t, answering(OK))
      const client = await FrameClient.open(t, port)
      client.send(bytes)
      const { payload } = await client.frame(GOAWAY)
      t.equal(payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
      await waitUntil('the end', () => client.closed)
      const counted = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      t.match(counted, `sluice_http2_floods_total{flood="${flood}"} 1\n`)
      await waitUntil('the end upstream', () =>
        upstream.connections.every(({ closed, ended }) => closed || ended),
      )
      t.equal((await ask(session, {})).status, 200, 'others are served')
    })
  }

  t.test('a client may go up to its bounds', async t => {
    const { port } = await scene(t, answering(OK))
    const client = await FrameClient.open(t, port)
    client.send(
      times(100, frame(PING, 0, 0, Buffer.alloc(8))),
      times(90, frame(SETTINGS, 0, 0)),
      times(1_900, frame(WINDOW_UPDATE, 0, 0, code(1))),
      frame(HEADERS, END_STREAM, 1, requestFields('/')),
      times(7, frame(CONTINUATION, 0, 1)),
      frame(CONTINUATION, END_HEADERS, 1, NOTHING),
    )
    await waitUntil('the answer', () => client.frames.some(one => one.stream === 1 && one.type === DATA))
    t.notOk(client.closed)
  })

  t.test('a client of gRPC may send a ping for each frame that it gets', async t => {
    const { port } = await scene(t, answering(OK))
    const client = await FrameClient.open(t, port)
    for (let stream = 1; stream < 240; stream += 2) {
      client.send(frame(HEADERS, WHOLE, stream, requestFields('/')))
      await waitUntil('the answer', () => client.of(stream).some(({ type }) => type === DATA))
      client.send(times(2, frame(PING, 0, 0, Buffer.alloc(8))))
    }
    await waitUntil('the replies', () => client.frames.filter(({ type }) => type === PING).length === 240)
    t.notOk(client.closed)
  })
})
