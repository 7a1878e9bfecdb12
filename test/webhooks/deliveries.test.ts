/** Calls that wait in memory: how many, how long, and what becomes of them. */
import t from 'tap'
import { Deliveries, type Delivery } from '../../webhooks/deliveries.js'
import { waitUntil } from '../helpers/wait.js'

/** Deliveries whose receiver answers when told to, with what happened to them in order. */
function scene({ most = 1000, waitAfter = () => 0 }: { most?: number; waitAfter?: () => number } = {}) {
  const happened: string[] = []
  const open: { readonly id: string; answer(status: number): void; fail(reason: string): void }[] = []
  let isClosed = false
  const deliveries = new Deliveries({
    poster: {
      post: (_url, _body, headers) =>
        new Promise((answer, reject) => {
          const fail = (reason: string) => reject(new Error(reason))
          open.push({ id: headers['webhook-id'] as string, answer, fail })
        }),
      close() {
        isClosed = true
        for (const one of open) one.fail('cut')
      },
    },
    most,
    waitAfter,
    sent: ({ id }) => void happened.push(`sent ${id}`),
    failed: ({ id }, problem) => void happened.push(`failed ${id}: ${problem}`),
    dropped: ({ id }, why) => void happened.push(`dropped ${id}: ${why}`),
  })
  const add = (id: string, host = 'a.example') => {
    const delivery: Delivery = { id, url: `https://${host}/hook`, secret: 'secret', body: '{}' }
    deliveries.add(delivery)
  }
  return { deliveries, add, open, happened, isClosed: () => isClosed }
}

t.test('at most four calls to one receiver are under way, and others are not held up', async t => {
  const { add, open, happened } = scene()
  for (let i = 0; i < 10; i += 1) add(`a${i}`)
  add('b', 'b.example')
  t.same(
    open.map(({ id }) => id),
    ['a0', 'a1', 'a2', 'a3', 'b'],
  )
  open[0]?.answer(204)
  await waitUntil('the next', () => open.length === 6)
  t.same([open[5]?.id, happened], ['a4', ['sent a0']])
})

t.test('beyond the limit the oldest that waits is dropped', async t => {
  const { add, happened } = scene({ most: 3 })
  for (let i = 0; i < 9; i += 1) add(`a${i}`)
  t.same(happened, ['dropped a4: more than 3 calls wait', 'dropped a5: more than 3 calls wait'])
})

t.test('a call is tried seven times, and after a 410 not again', async t => {
  const { add, open, happened } = scene()
  add('a')
  for (let i = 0; i < 7; i += 1) {
    await waitUntil(`attempt ${i}`, () => open.length === i + 1)
    open[i]?.answer(500)
  }
  await waitUntil('the end', () => happened.at(-1)?.startsWith('dropped'))
  t.equal(happened.filter(text => text.startsWith('failed')).length, 7)
  t.equal(happened.at(-1), 'dropped a: it failed 7 times')
  add('b')
  open[7]?.answer(410)
  await waitUntil('the other end', () => happened.at(-1) === 'dropped b: it failed 1 times')
})

t.test('a call that failed waits before it is made again', async t => {
  const { add, open, happened } = scene({ waitAfter: () => 60_000 })
  add('a')
  open[0]?.fail('down')
  await waitUntil('the failure', () => happened.length === 1)
  add('b')
  t.same(
    open.map(({ id }) => id),
    ['a', 'b'],
  )
})

t.test('on close what waits is tried once more, and nothing is accepted any more', async t => {
  const { deliveries, add, open, happened, isClosed } = scene({ waitAfter: () => 60_000 })
  add('a')
  open[0]?.fail('down')
  await waitUntil('the failure', () => happened.length === 1)
  const closed = deliveries.close()
  await waitUntil('the last attempt', () => open.length === 2)
  add('late')
  open[1]?.fail('still down')
  await closed
  t.same(happened.slice(1), [
    'dropped late: the gateway is shutting down',
    'failed a: still down',
    'dropped a: the gateway is shutting down',
  ])
  t.ok(isClosed())
})

t.test('close cuts calls that take longer than two seconds', async t => {
  const { deliveries, add, happened } = scene()
  for (let i = 0; i < 6; i += 1) add(`a${i}`)
  const startedAt = performance.now()
  await deliveries.close()
  t.ok(performance.now() - startedAt < 4000)
  t.equal(happened.filter(text => text.startsWith('dropped')).length, 6)
})
