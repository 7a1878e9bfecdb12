/** What is made of a rule belongs to that rule alone. */
import t from 'tap'
import { compiledRule, ruleDemand } from '../../gateway/compiled-rule.js'
import { counterKey } from '../../gateway/decide/key.js'
import { factsOf } from '../../gateway/listen/written.js'
import type { Check, Rule } from '../../gateway/types.js'

const plain: Rule<{ max: number }> = {
  ...{ id: 'r', kind: 'k', mode: 'enforce', key: ['project'], missing: 'skip', onStoreError: 'local' },
  ...{ config: { max: 1 }, source: { file: 'f', line: 1 } },
}
const facts = factsOf({ id: '', method: 'GET', path: '/' })
const project = { id: 'acme', plan: 'growth', environment: 'production' }
const keyOf = (rule: Rule) => counterKey(rule, { facts, project, route: '/', emailOrFlow: undefined })
const check = (rule: Rule<{ max: number }>): Check<{ max: number }> => ({ rule, key: 'k', route: '/', facts })

t.test('a changed copy begins anew, however it was made', async t => {
  const rule = compiledRule(plain)
  t.equal(keyOf(rule), 'sluice:1:{acme}:e:k:r')
  t.equal(keyOf({ ...rule, id: 'other' }), 'sluice:1:{acme}:e:k:other')
  t.equal(keyOf(compiledRule({ ...rule, mode: 'report-only' })), 'sluice:1:{acme}:r:k:r')
  t.equal(keyOf(rule), 'sluice:1:{acme}:e:k:r')
  t.same(rule, plain, 'nothing else is added to it')
})

t.test('a rule has one demand, and one without room for it a new one each time', async t => {
  const demand = ruleDemand(({ max }: { max: number }) => ({ kind: 'slots', max, ttlMs: 1000 }) as const)
  const rule = compiledRule(plain)
  t.equal(demand(check(rule)), demand(check(rule)))
  t.not(demand(check(rule)), demand(check(compiledRule(plain))))
  t.same(demand(check(plain)), demand(check(rule)))
})
