import t from 'tap'
import { describeColumns } from '../../../config/checks/columns.js'
import { columnsOf, type Selector } from '../../../config/words/words.js'

t.test('the plans and environments of a rule are described in one line, however many there are', async t => {
  const plans = ['free', 'starter', 'team', 'business', 'partner', 'internal']
  const environments = ['live', 'preview', 'test']
  const told = (...selectors: Selector[]) =>
    describeColumns(columnsOf(selectors, { plans, environments }), { plans, environments })
  t.equal(told({}), 'all plans in live, preview and test')
  t.equal(
    told({ environments: ['test'] }, { plans: ['free'] }),
    'free in live and preview; all plans in test',
  )
  t.equal(told({ plans: ['free', 'team'] }), 'all environments of free and team')
  t.equal(
    told({ plans: plans.slice(1) }),
    'all environments of five plans (starter, team, business, partner and internal)',
  )
  const many = Array.from({ length: 40 }, (_, i) => `p${i}`)
  const words = { plans: many, environments: ['live'] }
  const most = columnsOf([{ plans: many.slice(1) }], words)
  t.equal(describeColumns(most, words), '39 plans (p1, p2, p3 and 36 more) in live')
})
