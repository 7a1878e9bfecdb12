/** When an HTTP/2 connection is closed for lack of progress, tested alone and in virtual time. */
import t from 'tap'
import { WatchedSession } from '../../../gateway/listen/session-watch.js'

function watched() {
  const events: string[] = []
  const session = {
    destroyed: false,
    ping: () => events.push('ping') > 0,
  }
  const wire = { bytesRead: 0, bytesWritten: 0 }
  const one = new WatchedSession(
    session,
    wire,
    { gone: () => events.push('gone'), floods: () => events.push('floods') },
    0,
  )
  let now = 0
  /** Lets seconds pass, calling `each` in every one; returns the events. */
  const pass = (seconds: number, each = () => {}): string[] => {
    for (let i = 0; i < seconds; i++) {
      each()
      now += 1_000
      one.look(now)
    }
    return events.splice(0)
  }
  return { session, wire, one, pass }
}

t.test('a client that falls silent', async t => {
  t.test('is pinged once, and given up when it does not respond', async t => {
    const { pass } = watched()
    t.same(pass(9), [])
    t.same(pass(1), ['ping'])
    t.same(pass(19), [])
    t.same(pass(1), ['gone'])
  })

  t.test('and responds is pinged again only after another silence', async t => {
    const { pass, wire } = watched()
    t.same(pass(10), ['ping'])
    wire.bytesRead += 17
    t.same(pass(10), [])
    t.same(pass(1), ['ping'])
  })

  t.test('but slowly takes what is sent is not given up', async t => {
    const { pass, wire } = watched()
    const read = (): void => {
      wire.bytesWritten += 1
    }
    t.same(pass(120, read), ['ping'])
    t.same(pass(20), ['gone'])
  })

  t.test('is given up even when Node has ended the session but not the connection', async t => {
    const { pass, session } = watched()
    session.destroyed = true
    t.same(pass(20), ['gone'])
  })
})

t.test('frames that lead to nothing', async t => {
  t.test('count as a flood above 256 KB in ten seconds', async t => {
    const { pass, wire } = watched()
    const send = (): void => {
      wire.bytesRead += 26_000
    }
    t.same(pass(60, send), [])
    wire.bytesRead += 200_000
    t.same(pass(1, send), [])
    wire.bytesRead += 50_000
    t.same(pass(1, send), ['floods'])
  })

  t.test('do not include requests, uploads or window updates for what was sent', async t => {
    const { pass, wire, one } = watched()
    const work = (): void => {
      for (let i = 0; i < 100; i++) one.onRequest()
      wire.bytesRead += 100 * 4_000
      one.onUpload(1_000_000)
      wire.bytesRead += 1_000_000
      wire.bytesWritten += 1_000_000
      wire.bytesRead += 2_600_000
    }
    t.same(pass(60, work), [])
  })
})
