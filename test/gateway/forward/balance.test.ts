/** Which address gets a request: by load, by weight, in turn, and while it starts slowly. */
import fc from 'fast-check'
import t from 'tap'
import type { Balance } from '../../../config/words/words.js'
import { choose, shareAt } from '../../../gateway/forward/balance.js'

interface Address {
  readonly name: string
  load: number
  credit: number
  weightAt(now: number): number
}

const address = (name: string, weight: number, load = 0): Address => ({
  name,
  load,
  credit: 0,
  weightAt: () => weight,
})

/** How many of `requests` requests each address gets; with `hold` they stay in progress. */
function shares(balance: Balance, all: readonly Address[], requests: number, hold = false): number[] {
  const counts = new Map(all.map(one => [one, 0]))
  for (let i = 0; i < requests; i++) {
    const one = choose(balance, all, i)
    counts.set(one, (counts.get(one) ?? 0) + 1)
    if (hold) one.load += 1
  }
  return [...counts.values()]
}

t.test('round-robin gives each address its turn, whatever its load', async t => {
  const all = [address('a', 1, 9), address('b', 1), address('c', 1, 2)]
  const order = Array.from({ length: 6 }, () => choose('round-robin', all, 0).name)
  t.same(order, ['a', 'b', 'c', 'a', 'b', 'c'])
})

t.test('an address gets requests by its weight, and no run of them', async t => {
  const all = [address('a', 5), address('b', 1), address('c', 1)]
  const order = Array.from({ length: 7 }, () => choose('round-robin', all, 0).name).join('')
  t.equal(order, 'aabacaa')
})

for (const balance of ['round-robin', 'least-busy'] as const) {
  t.test(`${balance} keeps to the weights of idle addresses exactly, in every round`, async () => {
    const weights = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(weights, fc.integer({ min: 1, max: 3 }), (all, rounds) => {
        const sum = all.reduce((one, other) => one + other, 0)
        const seen = shares(
          balance,
          all.map((weight, i) => address(String(i), weight)),
          sum * rounds,
        )
        return seen.every((count, i) => count === (all[i] as number) * rounds)
      }),
      { numRuns: 50 },
    )
  })
}

t.test('least-busy fills addresses in proportion to their weights', async t => {
  t.same(shares('least-busy', [address('a', 3), address('b', 1)], 40, true), [30, 10])
  const busy = [address('a', 1, 8), address('b', 1, 2)]
  t.same(shares('least-busy', busy, 6, true), [0, 6], 'the busy one gets none until the other has as many')
})

t.test(
  'an address that starts slowly gets a tenth of its share, then more and more, then all of it',
  async t => {
    t.same(
      [0, 500, 1000, 2500, 5000, 10_000, 60_000].map(now => shareAt(now, 0, 10_000)),
      [0.1, 0.1, 0.1, 0.25, 0.5, 1, 1],
    )
    const slow: Address = { ...address('slow', 1), weightAt: now => shareAt(now, 0, 10_000) }
    const all = [address('a', 1), slow]
    const counted = (from: number) => {
      let count = 0
      for (let i = 0; i < 100; i++) if (choose('least-busy', all, from) === slow) count += 1
      return count
    }
    t.equal(counted(0), 9, '0.1 of 1.1')
    t.equal(counted(5000), 33, '0.5 of 1.5')
    t.equal(counted(10_000), 50)
  },
)

t.test('an idle address that starts slowly is not flooded because the others are busy', async t => {
  const slow: Address = { ...address('slow', 1), weightAt: () => 0.1 }
  const all = [address('a', 1, 5), address('b', 1, 5), slow]
  t.same(shares('least-busy', all, 8, true), [4, 4, 0])
})
