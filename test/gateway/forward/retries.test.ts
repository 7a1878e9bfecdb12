/** Retries as the configuration allows them: what is sent again, where, how often, and how many of all. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { RetryBudget, type RetrySettings } from '../../../gateway/forward/retries.js'
import { GET, OK, type RawPeer, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, type Options, startGateway } from './gateway.js'

const RETRIES: RetrySettings = { attempts: 2, on: ['connect', 502, 503], budget: 100 }
const request = (method: string) => `${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody`
const empty = (method: string) => `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`
const status = (code: number) => `HTTP/1.1 ${code} No\r\nContent-Length: 3\r\n\r\nbad`
const closing = async (peer: RawPeer) => {
  await peer.message()
  peer.reset()
}

/** A gateway in front of one address for each script. */
async function scene(
  t: Test,
  scripts: readonly ((peer: RawPeer) => unknown)[],
  retries: Partial<RetrySettings> = {},
  options: Partial<Options> = {},
) {
  const upstreams = await Promise.all(scripts.map(script => rawUpstream(script)))
  t.teardown(() => Promise.all(upstreams.map(upstream => upstream.stop())))
  const [url = '', ...others] = upstreams.map(upstream => upstream.url)
  const gateway = await startGateway(t, { url, others, retries: { ...RETRIES, ...retries }, ...options })
  const client = await clientOf(t, gateway)
  const ask = async (text: string) => {
    const bodyless = text.startsWith('HEAD')
    return Number((await client.send(text).message({ bodyless })).line.slice(9, 12))
  }
  return {
    gateway,
    upstreams,
    client,
    ask,
    connections: () => upstreams.map(({ connections }) => connections.length),
  }
}

t.test('a GET that one address answers with 503 is answered by another', async t => {
  const { gateway, client, ask } = await scene(t, [answering(status(503)), answering(OK)])
  for (let i = 0; i < 6; i++) t.equal(await ask(GET), 200)
  t.equal(client.unread, '', 'nothing of the first answer reaches the client')
  t.equal(gateway.retries.length, 3)
  t.same(new Set(gateway.retries), new Set(['503 sent']))
  t.equal(gateway.ended, 6, 'each request ends once')
  t.same(gateway.changes, [], 'an address that answers is not ejected')
  t.ok([...gateway.backends].every(({ load }) => load === 0))
})

t.test('statuses that are not listed, and those of the only address, are passed on', async t => {
  const other = await scene(t, [answering(status(500)), answering(status(504))])
  t.same(new Set([await other.ask(GET), await other.ask(GET)]), new Set([500, 504]))
  const only = await scene(t, [answering(status(503))])
  t.equal(await only.ask(GET), 503)
  t.same([other.gateway.retries, only.gateway.retries], [[], []])
})

t.test('a request is tried `attempts` times in all', async t => {
  const three = Array.from({ length: 3 }, () => answering(status(503)))
  for (const attempts of [1, 2, 3]) {
    const { ask, connections } = await scene(t, three, { attempts })
    t.equal(await ask(GET), 503, 'the client gets the last answer')
    t.equal(
      connections().reduce((sum, count) => sum + count),
      attempts,
    )
  }
  const { url } = await deadUpstream()
  const { ask, gateway } = await scene(t, [], { attempts: 1 }, { url, others: [(await deadUpstream()).url] })
  t.equal(await ask(GET), 502)
  t.same(gateway.retries, [])
})

t.test('only idempotent methods are sent again, and no body that was begun', async t => {
  for (const [text, expected] of [
    [empty('GET'), 200],
    [empty('HEAD'), 200],
    [empty('OPTIONS'), 200],
    [empty('DELETE'), 200],
    [empty('PUT'), 200],
    [empty('POST'), 503],
    [empty('PATCH'), 503],
    [request('PUT'), 503],
    [request('POST'), 503],
  ] as const) {
    await t.test(JSON.stringify(text.slice(0, 30)), async t => {
      const { gateway, ask } = await scene(
        t,
        [answering(status(503)), answering(OK)],
        {},
        { balance: 'round-robin' },
      )
      t.equal(await ask(text), expected)
      t.equal(gateway.retries.length, expected === 200 ? 1 : 0)
    })
  }
})

t.test(
  'a connection that breaks before the answer is a reason to try elsewhere, a begun answer is not',
  async t => {
    const broken = await scene(t, [closing, answering(OK)])
    for (const method of ['GET', 'PUT', 'DELETE']) t.equal(await broken.ask(empty(method)), 200)
    const halfway = async (peer: RawPeer) => {
      await peer.message()
      peer.send('HTTP/1.1 5').end()
    }
    const half = await scene(t, [halfway, answering(OK)], {}, { balance: 'round-robin' })
    t.equal(await half.ask(GET), 502)
    t.same(half.gateway.retries, [])
  },
)

t.test(
  'an address whose idle connection turns out to be closed is not asked twice while there is another',
  async t => {
    let answered = false
    const dies = async (peer: RawPeer) => {
      await peer.message()
      if (!answered) {
        answered = true
        peer.send(OK)
        await peer.message()
      }
      peer.reset()
    }
    const { ask, gateway, connections } = await scene(
      t,
      [dies, answering(OK)],
      {},
      { balance: 'round-robin' },
    )
    for (const method of ['GET', 'GET', 'PUT']) t.equal(await ask(empty(method)), 200)
    t.same(gateway.retries, ['connect sent'])
    t.same(connections(), [1, 2], 'the other is asked over a new connection, too')
  },
)

t.test(
  'a request that was never sent is tried elsewhere whatever its method, but not without `connect`',
  async t => {
    const dead = await deadUpstream()
    const alive = await rawUpstream(answering(OK))
    t.teardown(() => alive.stop())
    const urls = { url: dead.url, others: [alive.url], balance: 'round-robin' } as const
    const { ask, gateway } = await scene(t, [], {}, urls)
    t.equal(await ask(request('POST')), 200)
    t.same(gateway.retries, ['connect sent'])
    const strict = await scene(t, [], { on: [503] }, urls)
    t.equal(await strict.ask(request('POST')), 502)
  },
)

t.test('an answer that is not passed on is not read to its end', async t => {
  const endless = async (peer: RawPeer) => {
    await peer.message()
    peer.send('HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  }
  const { ask, upstreams } = await scene(t, [endless, answering(OK)], {}, { balance: 'round-robin' })
  t.equal(await ask(GET), 200)
  await waitUntil('its connection to be closed', () => upstreams[0]?.connections[0]?.ended)
})

t.test('retries stay within the budget, and beyond it answers are passed on', async t => {
  const ill = answering(status(503))
  const { gateway, ask } = await scene(t, [ill, ill], { budget: 10 })
  const seen = []
  for (let i = 0; i < 20; i++) seen.push(await ask(GET))
  t.same(new Set(seen), new Set([503]))
  t.same(gateway.retries.slice(0, 4), ['503 sent', '503 sent', '503 sent', '503 over-budget'])
  t.equal(gateway.retries.filter(one => one.endsWith('sent')).length, 3, 'of 20 requests')
})

t.test(
  'without the setting statuses are passed on, and retries for want of a connection are counted',
  async t => {
    const ill = answering(status(503))
    const plain = await scene(t, [ill, ill], {}, { retries: undefined })
    t.equal(await plain.ask(GET), 503)
    t.same(plain.gateway.retries, [])
    const alive = await rawUpstream(answering(OK))
    t.teardown(() => alive.stop())
    const dead = await deadUpstream()
    const { ask, gateway } = await scene(
      t,
      [],
      {},
      { retries: undefined, url: dead.url, others: [alive.url] },
    )
    t.same([await ask(GET), await ask(GET)], [200, 200])
    t.same(gateway.retries, ['connect sent'])
  },
)

t.test('in no ten seconds more is retried than the budget says, with a floor of three', async () => {
  const events = fc.array(fc.record({ wait: fc.integer({ min: 0, max: 3000 }), retry: fc.boolean() }), {
    maxLength: 200,
  })
  fc.assert(
    fc.property(events, fc.integer({ min: 0, max: 100 }), (all, percent) => {
      const budget = new RetryBudget(percent)
      const requests: number[] = []
      const retries: number[] = []
      const recent = (times: readonly number[], now: number, ms: number) =>
        times.filter(time => now - time < ms).length
      let now = 5_000
      for (const { wait, retry } of all) {
        now += wait
        if (!retry) {
          budget.requested(now)
          requests.push(now)
        } else if (budget.take(now)) {
          retries.push(now)
          // Steps of a second: what is older than nine seconds may have been forgotten.
          if (recent(retries, now, 9000) > Math.max(3, (recent(requests, now, 10_000) * percent) / 100))
            return false
        } else if (recent(retries, now, 10_000) < 3) return false
      }
      return true
    }),
  )
})

/** An address on which no server listens. */
async function deadUpstream() {
  const upstream = await rawUpstream()
  await upstream.stop()
  return upstream
}
