/** Requests wait until their rules have room, in order of arrival, and are charged once. */
import t from 'tap'
import { MemoryStore } from '../../../../gateway/decide/store/memory.js'
import type { CounterStore } from '../../../../gateway/decide/store/store.js'
import type { Rule } from '../../../../gateway/types.js'
import type { Verdict } from '../../../../gateway/verdict.js'
import { type Bench, bench, decide, inProcess, limits, metered, onRedis, rule, slots } from '../deciding.js'

const patient = (ms: number, most = 100): Pick<Rule, 'waits'> => ({ waits: { ms, most } })

/** A bucket that refills evenly: `burst` a second. */
const refilling = (id: string, burst: number, changes: Partial<Rule> = {}) =>
  rule(id, 'project-limits', { burst, algorithm: 'token-bucket', lease: false }, changes)

interface Asked {
  readonly name: string
  verdict: Verdict | undefined
  /** When it was decided. */
  at: number
}

/** Asks without waiting for the verdict. */
function ask(
  world: Bench,
  rules: readonly Rule[],
  name = '',
  knock: Parameters<typeof decide>[2] = {},
): Asked {
  const asked: Asked = { name, verdict: undefined, at: Number.NaN }
  const decided = decide(world, rules, knock)
  const note = (verdict: Verdict) => {
    asked.verdict = verdict
    asked.at = world.at
  }
  if (decided instanceof Promise) decided.then(note, error => t.fail(String(error)))
  else note(decided)
  return asked
}

/** A client that can leave. */
function caller() {
  const watchers: { onClose?(): void }[] = []
  const self = {
    closed: false,
    watch(watcher: { onClose?(): void }) {
      watchers.push(watcher)
    },
    leave() {
      self.closed = true
      for (const watcher of watchers) watcher.onClose?.()
    },
  }
  return self
}

t.test('a request waits until its window has room, with one more call to the store', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 100, patient(2000))]
  t.equal(ask(world, rules).verdict?.allowed, true)
  await world.pass(400)
  const waiting = ask(world, rules)
  await world.pass(599)
  t.equal(waiting.verdict, undefined, 'it waits')
  t.equal(world.calls.length, 2)
  await world.pass(10)
  t.equal(waiting.verdict?.allowed, true)
  t.equal(waiting.verdict?.waitedMs, 600)
  t.equal(world.calls.length, 3)
  t.same(world.waited, [['bucket', 'admitted']])
  const [burst, sustained] = waiting.verdict?.outcomes[0]?.readings ?? []
  t.match([burst?.used, sustained?.used], [1, 2], 'it is charged once')
})

t.test('a request that would have to wait longer than its rule allows is refused at once', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 100, patient(300))]
  ask(world, rules)
  await world.pass(400)
  t.equal(ask(world, rules).verdict?.allowed, false)
  t.same(world.queues.byRule(), [])
  await world.pass(400)
  const waiting = ask(world, rules)
  t.equal(waiting.verdict, undefined)
  await world.pass(300)
  t.equal(waiting.verdict?.allowed, true)
})

t.test('it waits only if every rule that refuses lets it wait', async t => {
  const world = inProcess()
  const rules = [limits('patient', 1, 100, patient(2000)), limits('strict', 1, 100)]
  ask(world, rules)
  t.equal(ask(world, rules).verdict?.allowed, false)
  const spaced = [limits('patient', 1, 100, patient(2000)), slots('exports', 1, patient(500))]
  await world.pass(1000)
  const first = ask(world, spaced)
  t.equal(first.verdict?.allowed, true)
  t.equal(ask(world, spaced).verdict?.allowed, false, 'the window takes a second')
  await world.pass(700)
  const waiting = ask(world, spaced)
  first.verdict?.release()
  await world.pass(299)
  t.equal(waiting.verdict, undefined, 'a slot alone is not enough')
  await world.pass(1)
  t.equal(waiting.verdict?.allowed, true)
})

t.test('requests of one key are admitted in their order, and newcomers queue behind them', async t => {
  const world = inProcess()
  const rules = [refilling('bucket', 10, patient(1000))]
  for (let i = 0; i < 10; i += 1) ask(world, rules)
  const order: string[] = []
  const asked = Array.from({ length: 5 }, (_, i) => ask(world, rules, `${i}`))
  const other = ask(world, rules, 'other', { project: 'globex' })
  t.equal(other.verdict?.allowed, true, 'other keys are not held up')
  for (let i = 0; i < 5; i += 1) {
    await world.pass(100)
    for (const one of asked) {
      if (one.verdict?.allowed && !order.includes(one.name)) order.push(one.name)
    }
    asked.push(ask(world, rules, `late ${i}`))
    t.equal(order.length, i + 1)
  }
  t.same(order, ['0', '1', '2', '3', '4'])
  await world.pass(500)
  t.same(
    asked.filter(({ verdict }) => verdict?.allowed).map(({ name }) => name),
    ['0', '1', '2', '3', '4', 'late 0', 'late 1', 'late 2', 'late 3', 'late 4'],
  )
})

t.test('those for whom there is no room in time are refused at once, without a call', async t => {
  const world = inProcess()
  const rules = [refilling('bucket', 10, patient(300))]
  for (let i = 0; i < 10; i += 1) ask(world, rules)
  const asked = Array.from({ length: 10 }, () => ask(world, rules))
  t.equal(asked.filter(({ verdict }) => verdict === undefined).length, 3)
  t.equal(world.calls.length, 11)
  const refused = asked.at(-1)?.verdict
  t.equal(refused?.allowed, false)
  t.match(refused?.outcomes, [{ result: 'limited', readings: [{ policy: 'bucket.burst', violated: true }] }])
  await world.pass(300)
  t.equal(asked.filter(({ verdict }) => verdict?.allowed).length, 3)
})

t.test('at most `waiting` requests of a key wait', async t => {
  const world = inProcess()
  const rules = [slots('exports', 1, patient(1000, 2))]
  const first = ask(world, rules)
  const asked = [ask(world, rules), ask(world, rules), ask(world, rules)]
  t.same(world.queues.byRule(), [{ rule: 'exports', waiting: 2, oldest_ms: 0 }])
  t.match(asked[2]?.verdict, { allowed: false })
  t.equal(world.calls.length, 2, 'those behind are not asked about')
  first.verdict?.release()
  await world.pass(0)
  t.equal(asked[0]?.verdict?.allowed, true)
  asked[0]?.verdict?.release()
  await world.pass(0)
  t.equal(asked[1]?.verdict?.allowed, true)
  t.same(world.queues.byRule(), [])
})

t.test('a request for a slot is refused when its wait ends', async t => {
  const world = inProcess()
  const rules = [slots('exports', 1, patient(1000))]
  const first = ask(world, rules)
  const waiting = ask(world, rules)
  await world.pass(999)
  t.equal(waiting.verdict, undefined)
  await world.pass(1)
  t.match(waiting.verdict, { allowed: false, waitedMs: 1000, holdsSlot: false })
  t.same(world.waited, [['exports', 'refused']])
  t.equal(world.calls.length, 2)
  first.verdict?.release()
  t.equal(ask(world, rules).verdict?.allowed, true)
})

t.test('a client that leaves is dropped, and charged nothing', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 100, patient(2000))]
  ask(world, rules)
  const leaving = caller()
  const [gone, next] = [ask(world, rules, 'gone', { caller: leaving }), ask(world, rules, 'next')]
  leaving.leave()
  await world.pass(0)
  t.equal(gone.verdict?.allowed, false)
  t.same(world.waited, [['bucket', 'gone']])
  await world.pass(1000)
  t.equal(next.verdict?.allowed, true, 'who was behind has its turn')
  t.equal(next.verdict?.outcomes[0]?.readings[1]?.used, 2)
})

t.test('while it waits, a request holds nothing of its other rules', async t => {
  const world = inProcess()
  const [bucket, exports] = [limits('bucket', 1, 100, patient(2000)), slots('exports', 1)]
  const first = ask(world, [bucket])
  t.equal(first.verdict?.allowed, true)
  const waiting = ask(world, [bucket, exports])
  const other = ask(world, [exports])
  t.equal(other.verdict?.allowed, true, 'the slot is free')
  await world.pass(1000)
  t.equal(waiting.verdict?.allowed, false, 'then the slot is taken, and that rule lets nobody wait')
  t.match(
    waiting.verdict?.outcomes.map(({ result }) => result),
    ['allowed', 'limited'],
  )
  t.equal(ask(world, [bucket]).verdict?.allowed, true, 'the refused one was not charged')
})

t.test('a meter that refuses after a wait is charged once', async t => {
  const world = inProcess()
  const [bucket, flood] = [limits('bucket', 1, 100, patient(2000)), metered('flood', 1)]
  ask(world, [bucket])
  const waiting = ask(world, [bucket, flood])
  t.equal(ask(world, [flood]).verdict?.allowed, true)
  await world.pass(1000)
  t.match(waiting.verdict, { allowed: false, outcomes: [{}, { readings: [{ used: 2 }] }] })
})

t.test('report-only rules do not wait, and count a request once', async t => {
  const world = inProcess()
  const rules = [
    limits('bucket', 1, 100, patient(2000)),
    limits('watched', 100, 100, { mode: 'report-only', ...patient(2000) }),
  ]
  ask(world, rules)
  const [first, behind] = [ask(world, rules), ask(world, rules)]
  await world.pass(2000)
  for (const one of [first, behind]) {
    t.equal(one.verdict?.allowed, true)
    t.equal(one.verdict?.reportOnly.length, 1)
  }
  t.same(
    [first, behind].map(({ verdict }) => verdict?.reportOnly[0]?.readings[1]?.used),
    [2, 3],
  )
  const strict = [
    limits('bucket', 10, 100),
    limits('watched', 1, 1, { mode: 'report-only', ...patient(2000) }),
  ]
  ask(world, strict, '', { project: 'globex' })
  t.equal(ask(world, strict, '', { project: 'globex' }).verdict?.allowed, true)
})

t.test('tokens that are given back wake the first who waits for them', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 1, 1, patient(2000))]
  ask(world, rules)
  const waiting = ask(world, rules)
  t.equal(waiting.verdict?.allowed, false, 'a minute is too long')
  const short = [limits('short', 1, 100, patient(2000))]
  ask(world, short)
  const next = ask(world, short)
  await world.pass(100)
  world.decider.forget('sluice:1:{acme}:e:project-limits:short')
  await world.pass(0)
  t.equal(next.verdict, undefined, 'nothing was given back, so it goes on waiting')
  await world.pass(900)
  t.equal(next.verdict?.allowed, true)
})

t.test('what is granted to a client that has left meanwhile is given back, and goes to the next', async t => {
  let answering: (() => void) | undefined
  const world = bench(now => {
    const memory = new MemoryStore(now)
    const late: CounterStore = {
      async take(asks) {
        const answers = memory.take(asks)
        if (answering !== undefined) await new Promise<void>(resolve => (answering = resolve))
        return answers
      },
      rides: () => true,
      peek: asks => memory.peek(asks),
      giveBack: (asks, answers) => memory.giveBack(asks, answers),
      charge: charges => memory.charge(charges),
      close: () => memory.close(),
    }
    return late
  })
  const rules = [slots('exports', 1, patient(5000)), limits('bucket', 10, 100)]
  const first = ask(world, rules)
  await world.pass(0)
  const leaving = caller()
  const [gone, next] = [ask(world, rules, 'gone', { caller: leaving }), ask(world, rules, 'next')]
  await world.pass(0)
  answering = () => {}
  first.verdict?.release()
  leaving.leave()
  const settled = world.pass(0)
  answering()
  answering = undefined
  await settled
  await world.pass(0)
  t.match([gone.verdict?.allowed, next.verdict?.allowed], [false, true])
  t.equal(next.verdict?.outcomes[1]?.readings[1]?.used, 2, 'who has gone is not charged')
})

t.test('in a sliding window, too, those for whom there is no room in time are refused at once', async t => {
  const world = inProcess()
  const rules = [limits('bucket', 10, 1000, patient(300))]
  for (let i = 0; i < 10; i += 1) {
    ask(world, rules)
    await world.pass(90)
  }
  await world.pass(90)
  // There is room every 90 ms, the next in 10 ms.
  const asked = Array.from({ length: 12 }, () => ask(world, rules))
  await world.pass(0)
  const waits = () => asked.filter(({ verdict }) => verdict === undefined).length
  t.equal(waits(), 4)
  await world.pass(300)
  t.equal(waits(), 0)
  t.equal(asked.filter(({ verdict }) => verdict?.allowed).length, 4)
})

t.test('the same on Redis, which is not asked about the rest', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [limits('bucket', 5, 1000, patient(300))]
  for (let i = 0; i < 5; i += 1) {
    ask(world, rules)
    await world.pass(180)
  }
  await world.pass(90)
  // There is room every 180 ms, the next in 10 ms.
  const asked: Asked[] = []
  for (let i = 0; i < 12; i += 1) {
    asked.push(ask(world, rules))
    await world.pass(0)
  }
  t.same(world.queues.byRule(), [{ rule: 'bucket', waiting: 2, oldest_ms: 0 }])
  t.equal(world.calls.length, 6)
  await world.pass(300)
  t.same(
    asked.map(({ verdict }) => verdict?.allowed),
    [true, true, ...Array.from({ length: 10 }, () => false)],
  )
})

t.test('a refusal that is remembered is waited for without asking Redis first', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [limits('bucket', 1, 1000, patient(300))]
  ask(world, rules)
  await world.pass(100)
  const refused = ask(world, rules)
  await world.pass(0)
  t.equal(refused.verdict?.allowed, false, '900 ms are too long')
  await world.pass(650)
  const waiting = ask(world, rules)
  await world.pass(0)
  t.equal(waiting.verdict, undefined)
  t.equal(world.calls.length, 2)
  await world.pass(300)
  t.equal(waiting.verdict?.allowed, true)
  t.equal(world.calls.length, 3)
})
