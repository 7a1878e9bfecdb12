/** Who gets a place at a backend, who waits, and who gives way. */
import fc from 'fast-check'
import t from 'tap'
import { BackendQueue, type Occupant } from '../../../gateway/forward/backend-queue.js'

type State = 'new' | 'held' | 'waiting' | 'gone'

class Request implements Occupant {
  state: State = 'new'
  waitsSince: number | undefined
  readonly client: string
  readonly #places: BackendQueue

  constructor(places: BackendQueue, client: string, waitsSince?: number) {
    this.#places = places
    this.client = client
    this.waitsSince = waitsSince
  }

  enter(): this {
    const entry = this.#places.enter(this)
    if (this.state === 'new')
      this.state = entry === 'admitted' ? 'held' : entry === 'waiting' ? 'waiting' : 'gone'
    return this
  }

  go(): void {
    this.state = 'held'
  }

  giveWay(): void {
    this.leave()
  }

  leave(): void {
    if (!this.#places.stopWaiting(this)) this.#places.leave(this)
    this.state = 'gone'
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('one client never takes all places, and others are admitted at once', async t => {
  const places = new BackendQueue(1024)
  const greedy = Array.from({ length: 1100 }, () => new Request(places, 'greedy').enter())
  t.equal(greedy.filter(({ state }) => state === 'held').length, 768)
  const others = Array.from({ length: 256 }, () => new Request(places, 'other').enter())
  t.ok(others.every(({ state }) => state === 'held'))
})

t.test('few places are shared, too: with two or more, one is always left for others', async t => {
  for (const most of [2, 3, 4]) {
    const places = new BackendQueue(most)
    const greedy = Array.from({ length: most }, () => new Request(places, 'greedy').enter())
    t.equal(greedy.filter(({ state }) => state === 'held').length, most - 1)
    t.equal(new Request(places, 'other').enter().state, 'held')
  }
})

t.test(
  'when several clients have taken all places, each newcomer gets one from those that hold many',
  async t => {
    const places = new BackendQueue(64)
    const slow = Array.from({ length: 64 }, (_, i) => new Request(places, `slow ${i % 4}`, i).enter())
    const newcomers = Array.from({ length: 10 }, (_, i) => new Request(places, `new ${i}`).enter())
    await turn()
    t.ok(newcomers.every(({ state }) => state === 'held'))
    t.same(
      slow.filter(({ state }) => state === 'gone').map(({ waitsSince }) => waitsSince),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      'those that have waited longest for their client give way',
    )
  },
)

t.test(
  'requests that wait for the upstream, and those of clients with few places, never give way',
  async t => {
    const places = new BackendQueue(64)
    const busy = Array.from({ length: 40 }, () => new Request(places, 'busy').enter())
    const modest = Array.from({ length: 24 }, (_, i) => new Request(places, `modest ${i}`, i).enter())
    const newcomer = new Request(places, 'new').enter()
    await turn()
    t.equal(newcomer.state, 'waiting')
    t.ok([...busy, ...modest].every(({ state }) => state === 'held'))
    busy[0]?.leave()
    await turn()
    t.equal(newcomer.state, 'held')
  },
)

t.test('clients that wait take turns, and a client cannot fill the queue', async t => {
  const places = new BackendQueue(4)
  const held = Array.from({ length: 4 }, (_, i) => new Request(places, `holder ${i}`).enter())
  const crowd = Array.from({ length: 1024 }, () => new Request(places, 'crowd').enter())
  const late = new Request(places, 'late').enter()
  t.equal(late.state, 'waiting')
  t.same(
    crowd.map(({ state }) => state).lastIndexOf('gone'),
    1023,
    'the newest of the longest queue gives way',
  )
  t.equal(new Request(places, 'crowd').enter().state, 'gone', 'and gets no more room')
  for (const one of held.slice(0, 2)) one.leave()
  await turn()
  t.equal(late.state, 'held', 'although it came last')
  t.equal(crowd[0]?.state, 'held')
})

t.test('in a full queue, places that a client holds count with those it waits for', async t => {
  const places = new BackendQueue(1024)
  const enter = (client: string, count: number): Request[] =>
    Array.from({ length: count }, () => new Request(places, client).enter())
  enter('hoarder', 768)
  enter('holder', 256)
  const hoarder = enter('hoarder', 500)
  const crowd = enter('crowd', 524)
  const late = new Request(places, 'late').enter()
  t.equal(late.state, 'waiting')
  t.equal(hoarder.at(-1)?.state, 'gone', 'although its queue is the shorter one')
  t.ok(crowd.every(({ state }) => state === 'waiting'))
  t.equal(new Request(places, 'hoarder').enter().state, 'gone', 'and gets no more room')
})

t.test('places are never lost, never given twice, and nobody waits in vain', async () => {
  const step = fc.record({
    client: fc.nat(3),
    leaver: fc.nat(1000),
    enters: fc.boolean(),
    slow: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 9 }),
      fc.array(step, { maxLength: 80 }),
      async (most, steps) => {
        const places = new BackendQueue(most)
        const mostOfOne = Math.max(1, Math.floor((most * 3) / 4))
        const all: Request[] = []
        const of = (state: State) => all.filter(one => one.state === state)
        for (const [at, { client, leaver, enters, slow }] of steps.entries()) {
          const present = [...of('held'), ...of('waiting')]
          if (enters || present.length === 0) {
            const one = new Request(places, `${client}`, slow ? at : undefined)
            all.push(one)
            one.enter()
          } else present[leaver % present.length]?.leave()
          await turn()
          const held = of('held')
          const ofClient = (name: string) => held.filter(one => one.client === name).length
          if (held.length > most || places.size !== held.length + of('waiting').length) return false
          for (const one of held) if (ofClient(one.client) > mostOfOne) return false
          for (const one of of('waiting')) {
            if (held.length < most && ofClient(one.client) < mostOfOne) return false
          }
        }
        for (const one of all) if (one.state !== 'gone') one.leave()
        return places.size === 0
      },
    ),
    { numRuns: 200 },
  )
})
