/** Frames that cost a client nothing, by the thousand: each kind ends its connection, and others are served meanwhile. */
import t from 'tap'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import {
  ACK,
  code,
  DATA,
  ENHANCE_YOUR_CALM,
  frame,
  GOAWAY,
  getFrame,
  INITIAL_WINDOW_SIZE,
  PADDED,
  PING,
  PRIORITY,
  postFrame,
  SETTINGS,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { onBothWires } from '../../listen/http2-scene.js'
import { type Attack, play, target } from './hostile-scene.js'

interface Flood extends Attack {
  readonly what: string
  /** nghttp2 does not count it. */
  readonly nodeSurvives?: boolean
}

const NONE = Buffer.alloc(0)
const all = (part: Buffer) => () => part
const upload = { begin: postFrame(1, '/upload') }

const FLOODS: readonly Flood[] = [
  { what: 'PING', part: all(frame(PING, 0, 0, Buffer.alloc(8))), most: 3_000 },
  { what: 'replies to PING that nobody sent', part: all(frame(PING, ACK, 0, Buffer.alloc(8))), most: 5_000 },
  { what: 'SETTINGS', part: all(frame(SETTINGS, 0, 0)), most: 3_000 },
  { what: 'SETTINGS with ACK', part: all(frame(SETTINGS, ACK, 0)), most: 5_000 },
  {
    what: 'thousands of values in one SETTINGS',
    part: i => settings(...Array.from({ length: 2_700 }, (_, n) => [INITIAL_WINDOW_SIZE, i + n] as const)),
    most: 300,
    together: 2,
  },
  {
    what: 'changes of INITIAL_WINDOW_SIZE while requests are in progress',
    begin: Buffer.concat(Array.from({ length: 90 }, (_, i) => getFrame(2 * i + 1, '/never'))),
    part: i => settings([INITIAL_WINDOW_SIZE, i & 1]),
    most: 3_000,
  },
  { what: 'empty DATA', ...upload, part: all(frame(DATA, 0, 1, NONE)), most: 5_000 },
  {
    what: 'DATA of padding alone',
    ...upload,
    part: all(frame(DATA, PADDED, 1, Buffer.concat([Buffer.from([9]), Buffer.alloc(9)]))),
    most: 5_000,
    nodeSurvives: true,
  },
  {
    what: 'WINDOW_UPDATE of the connection',
    part: all(frame(WINDOW_UPDATE, 0, 0, code(1))),
    most: 60_000,
    together: 1_000,
  },
  {
    what: 'WINDOW_UPDATE of a stream',
    begin: getFrame(1, '/never'),
    part: all(frame(WINDOW_UPDATE, 0, 1, code(1))),
    most: 60_000,
    together: 1_000,
  },
  {
    what: 'PRIORITY',
    part: i => frame(PRIORITY, 0, 2 * i + 1, Buffer.concat([code(0), Buffer.from([1])])),
    most: 60_000,
    together: 1_000,
  },
  { what: 'frames of an unknown type', part: all(frame(77, 0, 0)), most: 60_000, together: 1_000 },
]

onBothWires(t, (t, { wire, certificate }) => {
  t.test('a flood of GOAWAY while a request is in progress', async t => {
    const place = await target(t, certificate, wire)
    const client = await place.hostile(t)
    client.send(getFrame(1, '/never'))
    const goaways = Buffer.concat(Array(200).fill(frame(GOAWAY, 0, 0, Buffer.alloc(8))))
    for (let i = 0; i < 100 && !client.closed; i++) {
      client.send(goaways)
      await sleep(2)
    }
    await place.serve()
    if (wire === 'node') return
    await waitUntil('the end of the connection', () => client.closed)
    t.equal(client.goaway, ENHANCE_YOUR_CALM)
  })

  t.test('a flood', async t => {
    const place = await target(t, certificate, wire)
    for (const { what, nodeSurvives = false, ...attack } of FLOODS) {
      t.test(`of ${what}`, async t => {
        const before = place.seen.length
        const { hasEnded, code, sent } = await play(place, await place.hostile(t), attack)
        t.equal(hasEnded, wire === 'own' || !nodeSurvives)
        // Node sends codes of its own, which differ between versions, and its sessions are looked at once a second.
        if (wire === 'own') {
          t.equal(code, ENHANCE_YOUR_CALM)
          t.ok(sent < attack.most, `it is noticed after ${sent}`)
        }
        t.ok(
          place.seen.slice(before).every(({ isWhole, method }) => !isWhole || method === 'GET'),
          'no upload looks complete',
        )
      })
    }
  })
})
