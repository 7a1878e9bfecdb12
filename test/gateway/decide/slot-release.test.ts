/** However a request ends, and whatever happens to it on the way, its slots are given back exactly once. */
import { mock } from 'node:test'
import fc from 'fast-check'
import t from 'tap'
import type { Mode, Rule } from '../../../gateway/types.js'
import { HOUR, Model, STEPS } from './request-model.js'

function ruleOf(id: string, mode: Mode, max: number, count: 'handshake' | 'lifetime'): Rule {
  return {
    id,
    kind: 'in-flight',
    mode,
    key: ['full-path'],
    missing: 'skip',
    onStoreError: 'local',
    config: { max, slotTtl: 15_000, maxHold: HOUR, count },
    source: { file: 'in-flight.yaml', line: 1 },
  }
}

t.test('however a request ends, each of its slots is given back exactly once', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const script = fc.array(
    fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom('request' as const, 'upgrade' as const, 'throw' as const) },
      { weight: 3, arbitrary: fc.tuple(fc.nat(7), fc.constantFrom(...STEPS)) },
    ),
    { minLength: 4, maxLength: 40 },
  )
  const rules = fc.record({
    max: fc.integer({ min: 1, max: 3 }),
    count: fc.constantFrom('handshake' as const, 'lifetime' as const),
    second: fc.constantFrom('enforce' as const, 'report-only' as const),
    remote: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(rules, script, async ({ max, count, second, remote }, steps) => {
      const model = new Model([ruleOf('a', 'enforce', max, count), ruleOf('b', second, max, count)], remote)
      for (const step of steps) {
        if (typeof step === 'string') await model.begin(step)
        else {
          const steered = model.requests[step[0] % model.requests.length]
          if (steered !== undefined) await model.step(steered, step[1])
        }
        for (const held of model.held.values()) if (held < 0 || held > max) return false
      }
      await model.endAll()
      if (model.inFlight !== 0) return false
      if (model.releases.some(count => count !== 1)) return false
      await model.begin('request')
      await model.endAll()
      return model.taken > 0 && model.inFlight === 0
    }),
    { numRuns: 300 },
  )
})
