/** How requests are spread over the addresses of an upstream with weights, in turns, and with a slow start. */
import t, { type Test } from 'tap'
import { GET, type RawPeer, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, type Gateway, type Options, startGateway } from './gateway.js'

const named = (name: string) => `HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${name}`

/** A gateway in front of the addresses a, b, …, whose answers are their names; the first has weight 1. */
async function scene(t: Test, weights: readonly number[], options: Partial<Options> = {}): Promise<Gateway> {
  const upstreams = await Promise.all(weights.map((_, i) => rawUpstream(answering(named('abc'.charAt(i))))))
  t.teardown(() => Promise.all(upstreams.map(upstream => upstream.stop())))
  const [url = '', ...others] = upstreams.map(upstream => upstream.url)
  const weighted = others.map((url, i) => ({ url, weight: weights[i + 1] ?? 1 }))
  return startGateway(t, { url, others: weighted, ...options })
}

/** The names of the addresses that answered `count` requests, one after another. */
async function answers(client: RawPeer, count: number): Promise<string> {
  let names = ''
  for (let i = 0; i < count; i++) names += (await client.send(GET).message()).body
  return names
}

const countOf = (names: string, name: string) => names.split(name).length - 1

t.test('an address of weight 3 gets three requests for each of weight 1', async t => {
  const gateway = await scene(t, [1, 3])
  const names = await answers(await clientOf(t, gateway), 40)
  t.same([countOf(names, 'a'), countOf(names, 'b')], [10, 30])
})

t.test('in turns, a busy address gets as many requests as the others', async t => {
  const gateway = await scene(t, [1, 1, 1], { balance: 'round-robin' })
  const [busy] = gateway.backends
  for (let i = 0; i < 9; i++) {
    busy?.places.enter({ client: `client ${i}`, waitsSince: undefined, go() {}, giveWay() {} })
  }
  t.equal(await answers(await clientOf(t, gateway), 6), 'abcabc')
})

for (const balance of ['least-busy', 'round-robin'] as const) {
  t.test(
    `with ${balance}, an address that comes back starts slowly, and an ejected one gets nothing`,
    async t => {
      const gateway = await scene(t, [1, 1], { balance, slowStartMs: 3_600_000 })
      const client = await clientOf(t, gateway)
      t.equal(countOf(await answers(client, 10), 'a'), 5, 'nothing starts slowly with the gateway')
      const [first] = gateway.backends
      for (let i = 0; i < 3; i++) first?.failed(new Error('silence'))
      t.equal(await answers(client, 6), 'bbbbbb')
      await waitUntil('the trial', async () => (await answers(client, 1)) === 'a')
      t.equal(countOf(await answers(client, 22), 'a'), 2, 'a tenth of its share')
    },
  )
}
