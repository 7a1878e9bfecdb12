/** Whatever comes when: the order of each key is kept, its quota too, and nobody waits too long. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { ClusterStore } from '../../../../gateway/decide/redis/cluster-store.js'
import type { Rule } from '../../../../gateway/types.js'
import type { Verdict } from '../../../../gateway/verdict.js'
import { type Bench, decide, inProcess, limits, onRedis, slots } from '../deciding.js'

const SECOND = 1000

interface Arrival {
  /** Milliseconds since the one before. */
  readonly after: number
  readonly project: string
  /** How long an admitted request takes, in milliseconds. */
  readonly takes: number
  /** After how many milliseconds the client leaves, if it does. */
  readonly leaves: number | undefined
}

const arrivals = fc.array(
  fc.record({
    after: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 120 })),
    project: fc.constantFrom('acme', 'acme', 'globex'),
    takes: fc.integer({ min: 0, max: 400 }),
    leaves: fc.option(fc.integer({ min: 1, max: 600 }), { nil: undefined, freq: 4 }),
  }),
  { minLength: 1, maxLength: 40, size: 'max' },
)
const terms = fc.record({
  burst: fc.integer({ min: 1, max: 6 }),
  wait: fc.integer({ min: 20, max: 1500 }),
  waiting: fc.integer({ min: 1, max: 12 }),
  slots: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
})
interface Terms {
  readonly burst: number
  readonly wait: number
  readonly waiting: number
  readonly slots: number | undefined
}

interface Request extends Arrival {
  readonly at: number
  /** When it was decided. */
  decided: { readonly at: number; readonly verdict: Verdict } | undefined
  left: boolean
}

let run = 0

/** Plays the requests, each in its turn; returns them with their verdicts. */
async function play(
  t: Test,
  world: Bench,
  { burst, wait, waiting, slots: max }: Terms,
  come: readonly Arrival[],
  byClient: boolean,
) {
  const waits: Pick<Rule, 'waits'> = { waits: { ms: wait, most: waiting } }
  const rules = [
    limits('bucket', burst, 100_000, waits),
    ...(max === undefined ? [] : [slots('slots', max, waits)]),
    ...(byClient ? [limits('by-client', 5, 100_000, { key: ['client-ip'], ...waits })] : []),
  ]
  const requests: Request[] = []
  const events: { readonly at: number; readonly run: () => void }[] = []
  const later = (ms: number, run: () => void) => events.push({ at: world.at + ms, run })
  run += 1
  const until = async (end: number) => {
    for (;;) {
      const [next] = events.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      events.splice(events.indexOf(next), 1)
      await world.pass(Math.max(0, next.at - world.at))
      next.run()
      await world.pass(0)
    }
    await world.pass(Math.max(0, end - world.at))
  }
  for (const one of come) {
    await until(world.at + one.after)
    const watchers: { onClose?(): void }[] = []
    const caller = { closed: false, watch: (watcher: { onClose?(): void }) => watchers.push(watcher) }
    const request: Request = { ...one, at: world.at, decided: undefined, left: false }
    requests.push(request)
    const judged = (verdict: Verdict) => {
      request.decided = { at: world.at, verdict }
      if (request.left || !verdict.allowed) verdict.release()
      else later(one.takes, () => verdict.release())
    }
    const verdict = decide(world, rules, {
      project: `${one.project}-${run}`,
      client: `192.0.2.${run}`,
      caller,
    })
    if (verdict instanceof Promise) verdict.then(judged, error => t.fail(String(error)))
    else judged(verdict)
    if (one.leaves !== undefined) {
      later(one.leaves, () => {
        if (request.decided !== undefined) return
        request.left = true
        caller.closed = true
        for (const watcher of watchers) watcher.onClose?.()
      })
    }
    await world.pass(0)
    for (const { waiting: now } of world.queues.byRule()) {
      if (now > 2 * waiting) throw new Error(`${now} wait for two keys, with waiting: ${waiting}`)
    }
  }
  await until(world.at + 12 * SECOND)
  return requests
}

/** What must hold of the requests of one project. */
function check(requests: readonly Request[], { burst, wait }: Terms): void {
  const fail = (message: string): never => {
    throw new Error(message)
  }
  const admitted = requests.filter(({ decided, left }) => decided?.verdict.allowed && !left)
  for (const { decided, at } of requests) {
    if (decided === undefined) throw new Error('a request was never decided')
    if (decided.at - at > wait + 0.001) fail(`waited ${decided.at - at} ms of ${wait}`)
  }
  for (const [i, one] of admitted.entries()) {
    for (const other of requests) {
      const isBefore = requests.indexOf(other) < requests.indexOf(one)
      const waitedLonger = (other.decided?.at ?? 0) > (one.decided?.at ?? 0)
      if (isBefore && waitedLonger) fail(`${requests.indexOf(one)} has overtaken ${requests.indexOf(other)}`)
    }
    const { at = 0 } = one.decided ?? {}
    const within = admitted.filter(
      ({ decided }) => (decided?.at ?? 0) > at - SECOND && (decided?.at ?? 0) <= at,
    )
    if (within.length > burst) fail(`${within.length} of ${burst} in a second`)
    const used = one.decided?.verdict.outcomes[0]?.readings[1]?.used
    // Those admitted at the same time are charged in their order.
    if (used !== i + 1) fail(`${i + 1} were admitted, and ${used} charged`)
  }
}

async function holds(t: Test, open: () => Bench, numRuns: number, byClient = false): Promise<void> {
  await fc.assert(
    fc.asyncProperty(terms, arrivals, async (terms, come) => {
      const world = open()
      const requests = await play(t, world, terms, come, byClient)
      for (const project of ['acme', 'globex'])
        check(
          requests.filter(one => one.project === project),
          terms,
        )
      if (world.queues.byRule().length > 0) throw new Error('somebody still waits')
    }),
    { numRuns },
  )
  t.pass()
}

t.test('in process', t => holds(t, inProcess, 300))
t.test('slot by slot, as on a Cluster', async t => {
  const open = await onRedis(t, store => new ClusterStore(store))
  if (open !== undefined) await holds(t, open, 20, true)
})
t.test('on Redis', async t => {
  const open = await onRedis(t)
  if (open !== undefined) await holds(t, open, 30)
})
