/** What clients send behind requests in progress is bounded for all connections together. */
import { Socket } from 'node:net'
import t from 'tap'
import { RequestReader } from '../../../gateway/http1/request-reader.js'
import { Stalls } from '../../../gateway/http1/stalls.js'

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
/** More than is kept without a limit for all. */
const MUCH = REQUEST.repeat(1000)

/** Connections on which a request is in progress for ever, and the names of those that were given up. */
function connections(most: number) {
  const stalls = new Stalls(most)
  const gone: string[] = []
  const open = (name: string, client: string) => {
    let isFree = true
    const reader = new RequestReader(new Socket(), 16_384, stalls, {
      client,
      get isFree() {
        return isFree
      },
      onMostStalled() {
        gone.push(name)
        reader.stop()
      },
      onHeadBegun() {},
      onRequest() {
        isFree = false
      },
      onBroken(error) {
        throw error
      },
      onLastByte() {},
    })
    return {
      send: (text: string) => reader.add(Buffer.from(text)),
      close: () => reader.stop(),
    }
  }
  return { open, gone }
}

t.test('of connections with much behind a request, the client with most loses the oldest', async t => {
  const { open, gone } = connections(2)
  open('honest', '192.0.2.1').send(REQUEST + MUCH)
  open('first', '192.0.2.9').send(REQUEST + MUCH)
  t.same(gone, [])
  open('second', '192.0.2.9').send(REQUEST + MUCH)
  t.same(gone, ['first'])
})

t.test('connections with little behind a request do not count, nor do those that have ended', async t => {
  const { open, gone } = connections(1)
  for (const name of ['a', 'b', 'c']) open(name, '192.0.2.9').send(REQUEST.repeat(10))
  for (const name of ['d', 'e', 'f']) {
    const connection = open(name, '192.0.2.9')
    connection.send(REQUEST + MUCH)
    connection.close()
  }
  t.same(gone, [])
})
