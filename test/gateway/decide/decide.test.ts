/** One verdict out of many rules: who is asked, who gives back, and what a broken limiter does. */
import t from 'tap'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import type { Ruling } from '../../../gateway/plugin.js'
import { type Bench, bench, counted, decide, inProcess, limits, onRedis, slots } from './deciding.js'

t.test('rules of other slots are charged first and given back when the project refuses', async t => {
  const { spent, ...world } = inProcess()
  const rules = [limits('bucket', 1, 10), counted('by-address', 5)]
  t.equal((await decide(world as Bench, rules)).allowed, true)
  t.same([...spent.values()], [1])
  t.equal((await decide(world as Bench, rules)).allowed, false)
  t.same([...spent.values()], [1], 'what the address was charged came back')
})

t.test('what another rule refuses costs the project nothing', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 100, 100), counted('by-address', 1)]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  const verdict = await decide(world, rules, { client: '192.0.2.2' })
  t.equal(verdict.allowed, true)
  t.same(
    verdict.outcomes.flatMap(({ readings }) => readings).map(({ used }) => used),
    [2, 2],
  )
})

t.test('a window keyed by something else than the project is given back too', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 10), limits('by-address', 2, 2, { key: ['client-ip'] })]
  for (let i = 0; i < 5; i += 1) await decide(world, rules)
  world.at += 1000
  t.equal((await decide(world, rules)).allowed, true, 'the refused ones did not use up the address')
})

t.test(
  'a limiter that throws, rejects or is late is like a store that is away, and named in the log',
  async t => {
    const late: Promise<Ruling>[] = []
    const undone: string[] = []
    const misbehave: Record<string, () => Ruling | Promise<Ruling>> = {
      throws: () => {
        throw new Error('broken')
      },
      rejects: () => Promise.reject(new Error('broken')),
      late() {
        const ruling = new Promise<Ruling>(resolve => {
          const answer = {
            granted: true,
            store: 'memory',
            readings: [],
            giveBack: () => undone.push('late'),
          } as const
          setTimeout(resolve, 150, answer)
        })
        late.push(ruling)
        return ruling
      },
    }
    for (const [manner, spend] of Object.entries(misbehave)) {
      const world = bench(now => new MemoryStore(now), { spend })
      const open = await decide(world, [counted('own', 1, { onStoreError: 'open' })])
      t.equal(open.allowed, true, `${manner}: open`)
      const closed = await decide(world, [counted('own', 1, { onStoreError: 'closed' })])
      t.equal(closed.allowed, false, `${manner}: closed`)
      t.equal(closed.outcomes[0]?.result, 'unavailable')
    }
    await Promise.all(late)
    t.same(undone, ['late', 'late'], 'an answer nobody waited for is undone')
  },
)

t.test(
  'a request holds a slot until it is released, also one of a report-only rule that came late',
  async t => {
    const world = inProcess()
    const rules = [slots('one', 1), slots('watched', 1, { mode: 'report-only' })]
    const first = await decide(world, rules)
    t.equal(first.holdsSlot, true)
    t.equal((await decide(world, rules)).allowed, false)
    first.release()
    first.release()
    const next = await decide(world, rules)
    t.equal(next.allowed, true)
  },
)

t.test('when one store call fails, what the others granted is given back', async t => {
  for (const failing of ['first', 'last'] as const) {
    for (const manner of ['throws', 'rejects'] as const) {
      let broken = true
      const world = bench(now => {
        const memory = new MemoryStore(now)
        const take = (asks: readonly Ask[]) => {
          const fails = asks.some(({ key }) => key.includes(failing))
          if (!broken || !fails) return memory.take(asks)
          if (manner === 'throws') throw new Error('broken')
          return Promise.reject(new Error('broken'))
        }
        return Object.assign(Object.create(memory), {
          take,
          giveBack: (...given: Parameters<CounterStore['giveBack']>) => memory.giveBack(...given),
        }) as CounterStore
      })
      const rules = [
        slots('first', 1, { key: ['client-ip'] }),
        slots('held', 1, { key: ['client-ip'] }),
        counted('own', 1),
        limits('last', 10, 10),
      ]
      await t.rejects(async () => decide(world, rules), /broken/)
      t.equal(world.spent.get([...world.spent.keys()][0] as string), 0, 'also by a limiter of its own')
      broken = false
      const verdict = await decide(world, rules)
      t.equal(verdict.allowed, true, `${failing} ${manner}`)
      verdict.release()
    }
  }
})

t.test('all rules of a project are asked in one call, the report-only ones with them', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  await decide(world, [
    limits('once', 5, 50),
    slots('held', 3),
    limits('watched', 1, 1, { mode: 'report-only' }),
    slots('watched-slot', 1, { mode: 'report-only' }),
  ])
  t.same(
    world.calls.map(asks => asks.length),
    [4],
  )
})
