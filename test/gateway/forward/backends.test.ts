import { once } from 'node:events'
import { createServer } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { Ejection } from '../../../gateway/forward/ejection.js'
import { GET, OK, type RawPeer, type RawUpstream, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, type Gateway, type Options, startGateway } from './gateway.js'

const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody'

interface Scene {
  readonly gateway: Gateway
  readonly upstreams: readonly RawUpstream[]
  readonly client: RawPeer
}

/** A gateway in front of an upstream with one address for each script. */
async function scene(
  t: Test,
  scripts: readonly ((peer: RawPeer) => unknown)[],
  options: Partial<Options> = {},
): Promise<Scene> {
  const upstreams = await Promise.all(scripts.map(script => rawUpstream(script)))
  t.teardown(() => Promise.all(upstreams.map(upstream => upstream.stop())))
  const [url = '', ...others] = upstreams.map(upstream => upstream.url)
  const gateway = await startGateway(t, { url, others, ...options })
  return { gateway, upstreams, client: await clientOf(t, gateway) }
}

/** An address on which no server listens. */
async function deadUrl(): Promise<{ url: string; port: number }> {
  const upstream = await rawUpstream()
  await upstream.stop()
  return upstream
}

async function statuses(client: RawPeer, request: string, count: number): Promise<string[]> {
  const seen: string[] = []
  for (let i = 0; i < count; i++) seen.push((await client.send(request).message()).line.slice(9, 12))
  return seen
}

const served = ({ upstreams }: Scene) => upstreams.map(({ connections }) => connections.length)

t.test('requests are spread evenly over the addresses of an upstream', async t => {
  const { upstreams, client } = await scene(t, [answering(OK), answering(OK), answering(OK)])
  t.same(await statuses(client, GET, 9), Array(9).fill('200'))
  t.same(
    upstreams.map(({ connections }) => connections.length),
    [1, 1, 1],
    'addresses with equal load take turns',
  )
})

t.test('a new request goes to the address with the fewest requests in progress', async t => {
  const stage = await scene(t, [() => {}, answering(OK)])
  const busy = await clientOf(t, stage.gateway)
  busy.send(GET)
  await waitUntil('the first request', () => served(stage).includes(1))
  const other = await clientOf(t, stage.gateway)
  other.send(GET)
  await waitUntil('the second request', () => served(stage).join() === '1,1')
  t.same(await statuses(stage.client, GET, 5), Array(5).fill('200'), 'no request goes to the silent address')
  t.same(
    [...stage.gateway.backends].map(({ requests }) => requests),
    [1, 0],
  )
})

t.test('a gateway that runs out of file descriptors does not blame the addresses', async t => {
  const { gateway } = await scene(t, [answering(OK), answering(OK)])
  const [backend] = [...gateway.backends]
  const failing = (code: string) => {
    for (let i = 0; i < 3; i++) backend?.unreachable(Object.assign(new Error('connect'), { code }))
  }
  failing('EMFILE')
  t.same(gateway.changes, [])
  failing('ECONNREFUSED')
  t.same(gateway.changes, [`${backend?.origin.url.port} ejected`])
})

t.test('an address that answers nonsense three times in a row is ejected', async t => {
  const { gateway, client, upstreams } = await scene(t, [answering('NONSENSE\r\n\r\n'), answering(OK)])
  const seen = await statuses(client, GET, 10)
  t.equal(seen.filter(status => status === '502').length, 3)
  t.same(gateway.changes, [`${upstreams[0]?.port} ejected`])
})

t.test('one dead address', async t => {
  t.test('fails no request, and is ejected after a few attempts', async t => {
    const dead = await deadUrl()
    const alive = await rawUpstream(answering(OK))
    t.teardown(() => alive.stop())
    const gateway = await startGateway(t, { url: dead.url, others: [alive.url] })
    const client = await clientOf(t, gateway)
    t.same(
      await statuses(client, POST, 12),
      Array(12).fill('200'),
      'every POST gets 200, because none was sent to the dead address',
    )
    t.same(gateway.changes, [`${dead.port} ejected`])
    t.same(gateway.failures, [])
  })

  t.test('fails no request and loses no body when it completes no TLS handshake', async t => {
    // It accepts connections and never completes a TLS handshake.
    const silent = await rawUpstream(() => {})
    t.teardown(() => silent.stop())
    const alive = await rawUpstream(answering(OK))
    t.teardown(() => alive.stop())
    const gateway = await startGateway(t, {
      url: silent.url.replace('http:', 'https:'),
      others: [alive.url],
      connectMs: 100,
    })
    const client = await clientOf(t, gateway)
    t.same(await statuses(client, POST, 4), Array(4).fill('200'))
    t.equal((await alive.connection(0)).unread, '')
  })

  t.test('returns after the first response to a trial request', async t => {
    const upstreams = [await rawUpstream(answering(OK)), await rawUpstream(answering(OK))] as const
    t.teardown(() => Promise.all(upstreams.map(upstream => upstream.stop())))
    const [one, other] = upstreams
    const gateway = await startGateway(t, { url: one.url, others: [other.url] })
    const client = await clientOf(t, gateway)
    const [ill] = gateway.backends
    for (let i = 0; i < 3; i++) ill?.failed(new Error('silence'))
    t.same(gateway.changes, [`${one.port} ejected`])
    t.same(await statuses(client, GET, 4), Array(4).fill('200'))
    t.equal(one.connections.length, 0, 'nothing is sent to the ejected address')
    await waitUntil('the trial', async () => {
      await client.send(GET).message()
      return gateway.changes.length === 2
    })
    t.same(gateway.changes, [`${one.port} ejected`, `${one.port} returned`])
    t.equal(one.connections.length, 1)
  })
})

t.test('when every address is dead requests get 502, and each address is still tried', async t => {
  const [one, other] = [await deadUrl(), await deadUrl()]
  const gateway = await startGateway(t, { url: one.url, others: [other.url] })
  const client = await clientOf(t, gateway)
  t.same(await statuses(client, GET, 4), Array(4).fill('502'))
  t.same(gateway.changes.toSorted(), [`${one.port} ejected`, `${other.port} ejected`].toSorted())
  const revived = await rawUpstreamAt(t, one.port)
  t.same(
    await statuses(client, GET, 3),
    Array(3).fill('200'),
    'a revived address is used without waiting for a trial',
  )
  t.ok(revived.connections > 0)
})

/** An upstream that starts on a given port. */
async function rawUpstreamAt(t: Test, port: number): Promise<{ connections: number }> {
  const state = { connections: 0 }
  const server = createServer(socket => {
    state.connections += 1
    socket.on('data', () => socket.write(OK)).on('error', () => {})
    t.teardown(() => socket.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return state
}

t.test('an address that resets connections with requests on them', async t => {
  const closing = async (peer: RawPeer) => {
    await peer.message()
    peer.reset()
  }

  t.test('has its GETs sent once more, to another address', async t => {
    const { gateway, client } = await scene(t, [closing, answering(OK)])
    t.same(await statuses(client, GET, 6), Array(6).fill('200'))
    t.same(gateway.failures, [])
  })

  t.test('never has a POST sent twice', async t => {
    const { upstreams, client } = await scene(t, [closing, closing])
    t.same(await statuses(client, POST, 1), ['502'])
    t.equal(upstreams.flatMap(({ connections }) => connections).length, 1)
  })

  t.test('has its GETs sent to two addresses at most', async t => {
    const stage = await scene(t, [closing, closing, closing, closing])
    t.same(await statuses(stage.client, GET, 1), ['502'])
    t.equal(
      served(stage).reduce((sum, count) => sum + count, 0),
      2,
    )
  })

  t.test('is not ejected when it closed only idle connections, and their GETs are sent again', async t => {
    const answered: RawPeer[] = []
    const idle: RawPeer[] = []
    const closesIdle = async (peer: RawPeer) => {
      await peer.message()
      if (answered.length === 8) return peer.send(OK)
      // All together, so that each request of the first round has its own connection.
      answered.push(peer)
      if (answered.length === 8) for (const one of answered) one.send(OK)
      await peer.message()
      idle.push(peer)
      if (idle.length === 8) for (const one of idle) one.reset()
    }
    const { gateway, client } = await scene(t, [closesIdle, closesIdle])
    const clients = [client, ...(await Promise.all(Array.from({ length: 7 }, () => clientOf(t, gateway))))]
    for (const round of [1, 2]) {
      const seen = await Promise.all(clients.map(one => statuses(one, GET, 1)))
      t.same(seen.flat(), Array(8).fill('200'), `round ${round}`)
    }
    t.same(gateway.changes, [])
  })
})

t.test('a silent address is ejected, and its request is not tried elsewhere', async t => {
  const { gateway, upstreams, client } = await scene(t, [() => {}, () => {}], { headMs: 60 })
  // Deadlines have a resolution of up to a second.
  t.same(await statuses(client, GET, 1), ['504'])
  t.equal(
    upstreams.flatMap(({ connections }) => connections).length,
    1,
    'the first request goes to one address only, which may still be working on it',
  )
  const peers = await Promise.all(Array.from({ length: 6 }, () => clientOf(t, gateway)))
  t.same(
    (await Promise.all(peers.map(peer => statuses(peer, GET, 1)))).flat(),
    Array(6).fill('504'),
    'when all are ejected, all are still tried',
  )
  t.equal(gateway.changes.length, 2)
})

t.test('WebSockets are spread over the same addresses, without the ejected one', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', socket => socket.on('message', data => socket.send(data)))
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  const dead = await deadUrl()
  const { port } = server.address() as { port: number }
  const gateway = await startGateway(t, { url: dead.url, others: [`http://127.0.0.1:${port}`] })
  const open = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/`)
    await once(socket, 'open')
    return socket
  }
  const sockets = await Promise.all([1, 2, 3, 4, 5, 6].map(open))
  t.same(gateway.changes, [`${dead.port} ejected`])
  t.same(
    [...gateway.backends].map(({ tunnels }) => tunnels),
    [0, 6],
  )
  const [socket] = sockets as [WebSocket]
  socket.send('hello')
  t.equal(String((await once(socket, 'message'))[0]), 'hello')
  for (const one of sockets) one.close()
  await waitUntil('all to be given back', () => [...gateway.backends].every(({ load }) => load === 0))
})

const occupant = (client: string) => ({ client, waitsSince: undefined, go() {}, giveWay() {} })

t.test('at the limit of requests to an upstream', async t => {
  t.test('a request gets 503 at once when the queue is full, and every place is given back', async t => {
    const { gateway, client } = await scene(t, [() => {}], { connections: 1, connectMs: 30_000, headMs: 200 })
    const [backend] = gateway.backends
    client.send(GET)
    await waitUntil('the first to be under way', () => backend?.requests === 1)
    const others = Array.from({ length: 1024 }, (_, i) => occupant(`client ${i}`))
    t.ok(others.every(other => backend?.places.enter(other) === 'waiting'))
    const late = await clientOf(t, gateway)
    t.match((await late.send(POST).message()).line, / 503 /)
    t.same(gateway.failures, ['overloaded'])
    t.ok(others.every(other => backend?.places.stopWaiting(other)))
    t.match((await client.message()).line, / 504 /)
    await waitUntil('the place to be given back', () => backend?.load === 0)
  })

  t.test('a client that leaves just as its turn comes passes its place on', async t => {
    const { gateway, client } = await scene(t, [answering(OK)], { connections: 1 })
    const [backend] = gateway.backends
    const holder = occupant('another')
    t.equal(backend?.places.enter(holder), 'admitted')
    const leaver = await clientOf(t, gateway)
    leaver.send(GET)
    await waitUntil('the request to wait', () => backend?.requests === 2)
    leaver.reset()
    backend?.places.leave(holder)
    t.match((await client.send(GET).message()).line, / 200 /)
    await waitUntil('no place to be lost', () => backend?.load === 0)
  })
})

t.test('ejection', async t => {
  t.test('takes three failures in a row, and one success ends it', async t => {
    const ejection = new Ejection()
    t.same(
      [ejection.failed(0), ejection.failed(0), ejection.succeeded(), ejection.failed(0), ejection.failed(0)],
      [false, false, false, false, false],
    )
    t.notOk(ejection.ejected)
    t.ok(ejection.failed(0))
    t.ok(ejection.ejected)
    t.notOk(ejection.failed(0), 'an ejection is reported once')
    t.ok(ejection.succeeded())
    t.notOk(ejection.ejected)
  })

  t.test('allows one trial after a second, then ever more rarely, but at least every 30 seconds', async t => {
    const ejection = new Ejection()
    for (let i = 0; i < 3; i++) ejection.failed(0)
    const trials: number[] = []
    for (let now = 0; now <= 120_000; now += 500) {
      if (ejection.isTrialDue(now)) {
        trials.push(now / 1000)
        ejection.startTrial(now)
      }
      t.notOk(ejection.isTrialDue(now))
    }
    t.same(trials, [1, 3, 7, 15, 31, 61, 91])
  })

  t.test('begins only after three failures since the last success, and any success ends it', async () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('ok', 'fail', 'try')), events => {
        const ejection = new Ejection()
        let failures = 0
        for (const [now, event] of events.entries()) {
          if (event === 'ok') ejection.succeeded()
          else if (event === 'fail') ejection.failed(now)
          else if (ejection.isTrialDue(now)) ejection.startTrial(now)
          failures = event === 'ok' ? 0 : failures + (event === 'fail' ? 1 : 0)
          if (ejection.ejected !== failures >= 3) return false
        }
        return true
      }),
    )
  })
})
