/** When a crossing is reported again, with a clock of the test. */
import fc from 'fast-check'
import t from 'tap'
import { hidden } from '../../../config/words/hidden.js'
import type { Quota } from '../../../config/words/quota.js'
import { Crossings } from '../../../gateway/notify/crossings.js'
import type { Project, Rule } from '../../../gateway/types.js'
import type { Reading, Verdict } from '../../../gateway/verdict.js'

const PROJECT: Project = { id: 'acme', plan: 'growth', environment: 'production' }
const MINUTE = 60_000
const QUOTA = 100

const ruleOf = (quota: Partial<Quota>): Rule =>
  ({
    id: 'orders',
    kind: 'project-limits',
    mode: 'enforce',
    key: ['project'],
    config: {
      algorithm: 'sliding-window',
      lease: false,
      notify: {
        at: [80],
        url: hidden('https://hooks.example.com/', 'address'),
        secret: hidden('secret-secret-secret', 'secret'),
      },
      ...quota,
    },
  }) as unknown as Rule

/** Claims as Redis keeps them, by the test's clock; gateways share them. */
function sceneOf(quota: Partial<Quota>, gateways = 1) {
  let now = 1_800_000_000_000
  const ends = new Map<string, number>()
  const sent: { readonly at: number }[] = []
  const notifications = {
    async claim(name: string, ms: number) {
      const isFirst = (ends.get(name) ?? 0) <= now
      ends.set(name, now + ms)
      return isFirst
    },
    shorten: (name: string, ms: number) => void ends.set(name, now + ms),
    send: async () => void sent.push({ at: now }),
  }
  const shown = { project: ({ id }: Project) => id, hash: (text: string) => text }
  const rule = ruleOf(quota)
  const all = Array.from({ length: gateways }, () => new Crossings({ notifications, shown, now: () => now }))
  return {
    sent,
    watch: <V extends Verdict | Promise<Verdict>>(verdict: V) => all[0]?.watch(verdict, PROJECT),
    pass(ms: number) {
      now += ms
    },
    /** A request finds this use; how often was something reported for it? */
    async sees(used: number, more: Partial<Reading> = {}, gateway = 0): Promise<number> {
      const before = sent.length
      const reading = {
        policy: 'orders.x',
        quota: QUOTA,
        used,
        left: QUOTA - used,
        resetMs: 1000,
        violated: false,
      }
      const outcome = {
        rule,
        key: 'k',
        route: '*',
        result: 'allowed',
        store: 'redis',
        readings: [{ ...reading, ...more }],
      }
      const verdict = { allowed: true, outcomes: [outcome], reportOnly: [], settled: undefined }
      all[gateway]?.watch(verdict as unknown as Verdict, PROJECT)
      await all[gateway]?.idle()
      return sent.length - before
    },
  }
}

const ROLLING = { windows: [{ name: 'hourly', requests: QUOTA, per: 60 * MINUTE }] }

t.test('a rolling window is reported again only after its use fell below the threshold', async t => {
  const { sees, pass } = sceneOf(ROLLING)
  t.equal(await sees(79), 0)
  t.equal(await sees(80), 1)
  for (let i = 0; i < 300; i += 1) {
    pass(MINUTE)
    t.equal(await sees(85), 0, 'however long it stays above')
  }
  t.equal(await sees(79), 0)
  pass(2 * MINUTE)
  t.equal(await sees(80), 1)
})

t.test('use that swings around the threshold is reported once', async t => {
  const { sees, pass, sent } = sceneOf(ROLLING)
  for (let i = 0; i < 100; i += 1) {
    await sees(79 + (i % 2))
    pass(20_000)
  }
  t.equal(sent.length, 1)
})

t.test('after a pause a window whose use never fell is not reported again', async t => {
  const { sees, pass } = sceneOf({
    windows: [{ name: 'weekly', requests: QUOTA, per: 7 * 24 * 60 * MINUTE }],
  })
  t.equal(await sees(90), 1)
  pass(6 * 24 * 60 * MINUTE)
  t.equal(await sees(90), 0)
})

t.test('a fixed window is reported once in each of its periods', async t => {
  const { sees, pass } = sceneOf({ ...ROLLING, algorithm: 'fixed-window' })
  t.equal(await sees(80, { resetMs: 30 * MINUTE }), 1)
  pass(29 * MINUTE)
  t.equal(await sees(99, { resetMs: MINUTE }), 0)
  pass(MINUTE)
  t.equal(await sees(1, { resetMs: 60 * MINUTE }), 0)
  t.equal(await sees(80, { resetMs: 60 * MINUTE }), 1)
})

t.test('a month is reported again in the next, even in its first second', async t => {
  const calendar = { unit: 'month', timezone: 'UTC' } as const
  const { sees, pass } = sceneOf({ windows: [{ name: 'monthly', requests: QUOTA, per: 'month' }] })
  t.equal(await sees(80, { calendar, resetMs: MINUTE }), 1)
  pass(MINUTE - 10)
  t.equal(await sees(99, { calendar, resetMs: 10 }), 0)
  pass(20)
  t.equal(await sees(80, { calendar, resetMs: 31 * 24 * 60 * MINUTE }), 1)
})

t.test('a window of a second is reported at most once a minute', async t => {
  const { sees, pass, sent } = sceneOf({ burst: QUOTA, algorithm: 'fixed-window' })
  for (let i = 0; i < 120; i += 1) {
    await sees(90, { resetMs: 500 })
    pass(1000)
  }
  t.equal(sent.length, 2)
})

t.test('a refusal has reached every threshold, though a costly request leaves some of the quota', async t => {
  const { sees } = sceneOf(ROLLING)
  t.equal(await sees(70, { violated: true }), 1)
})

t.test('a verdict is passed on as it is, so no request waits', t => {
  const { watch } = sceneOf(ROLLING)
  const verdict = { allowed: true, outcomes: [], reportOnly: [], settled: undefined } as unknown as Verdict
  const promised = Promise.resolve(verdict)
  t.equal(watch(verdict), verdict)
  t.equal(watch(promised), promised)
  t.end()
})

t.test('what could not be counted is not reported', async t => {
  const { sees } = sceneOf(ROLLING)
  t.equal(await sees(0, { used: undefined, left: undefined }), 0)
})

t.test('gateways that see any use in any order report a rise once', async t => {
  const step = fc.record({
    used: fc.integer({ min: 0, max: QUOTA }),
    gateway: fc.nat({ max: 1 }),
    pause: fc.integer({ min: 0, max: 10 * MINUTE }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const { sees, pass, sent } = sceneOf(ROLLING, 2)
      let falls = 0
      let isAbove = false
      for (const { used, gateway, pause } of steps) {
        pass(pause)
        if (isAbove && used < 80) falls += 1
        isAbove = used >= 80
        const reported = await sees(used, {}, gateway)
        if (used < 80) t.equal(reported, 0)
      }
      t.ok(sent.length <= falls + 1)
      t.ok(sent.length >= Number(steps.some(({ used }) => used >= 80)))
    }),
  )
})
