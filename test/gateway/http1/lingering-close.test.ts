/** Connections that are closed while their clients still send. */
import { Duplex } from 'node:stream'
import t from 'tap'
import { closeLingering } from '../../../gateway/http1/lingering-close.js'

/** A connection whose client sends without end. */
class Endless extends Duplex {
  read_ = 0

  override _read(): void {
    this.read_ += 1
    setImmediate(() => this.push(Buffer.alloc(1024)))
  }

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done()
  }
}

t.test(
  'what nobody wants is read from a few connections at a time, all in turn, so others are not kept waiting',
  async t => {
    const sockets = Array.from({ length: 200 }, () => new Endless())
    t.teardown(() => sockets.map(socket => socket.destroy()))
    let dropped = 0
    for (const socket of sockets) {
      closeLingering(socket)
      socket.on('data', () => {
        dropped += 1
      })
    }
    let most = 0
    for (let turn = 0; turn < 200; turn += 1) {
      const before = dropped
      await new Promise(resolve => setImmediate(resolve))
      most = Math.max(most, dropped - before)
    }
    t.ok(most <= 32, `${most} reads in one turn`)
    t.ok(
      sockets.every(socket => socket.read_ > 0),
      'each has had its turn',
    )
  },
)

t.test('when too many clients go on sending, those that have waited longest are closed', t => {
  const sockets = Array.from({ length: 300 }, () => new Endless())
  t.teardown(() => sockets.map(socket => socket.destroy()))
  for (const socket of sockets) closeLingering(socket)
  t.same(
    sockets.map(({ destroyed }) => destroyed),
    sockets.map((_, i) => i < 300 - 256),
  )
  t.end()
})
