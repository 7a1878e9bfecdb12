/** When the peer of a connection is asked for a sign of life, and when it is given up. */
import t from 'tap'
import { PATIENCE_MS, QUIET_MS } from '../../../gateway/http2/limits.js'
import { Liveness } from '../../../gateway/http2/liveness.js'

t.test('a peer is asked once it is quiet, and given up when it does not reply', async t => {
  const peer = new Liveness(0)
  t.equal(peer.look(QUIET_MS - 1), 'wait')
  t.equal(peer.look(QUIET_MS), 'ask')
  peer.onAsked()
  t.equal(peer.look(QUIET_MS + PATIENCE_MS - 1), 'wait', 'it is asked only once')
  t.equal(peer.look(QUIET_MS + PATIENCE_MS), 'give-up')
})

t.test('a peer that replies is asked again after the next quiet time', async t => {
  const peer = new Liveness(0)
  peer.look(QUIET_MS)
  peer.onAsked()
  peer.onSeen()
  const replied = QUIET_MS + 5
  t.equal(peer.look(replied), 'wait')
  t.equal(peer.look(replied + QUIET_MS - 1), 'wait')
  t.equal(peer.look(replied + QUIET_MS), 'ask')
})

t.test('one that nobody could ask yet is not given up', async t => {
  const peer = new Liveness(0)
  t.equal(peer.look(QUIET_MS + PATIENCE_MS), 'ask')
})
