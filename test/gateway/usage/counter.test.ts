/** How much memory the counts of a process may take. */
import t from 'tap'
import { UsageCounter } from '../../../gateway/usage/counter.js'
import { hourOf, rowsOf } from '../../../gateway/usage/row.js'
import { openUsageStore } from '../../../gateway/usage/store.js'
import type { Finished } from '../../../gateway/verdict.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }

t.test('however many projects credentials name, only so many have rows of their own', async t => {
  const store = openUsageStore('', log)
  const counter = new UsageCounter(store, log)
  const startedAt = Date.now()
  for (let i = 0; i < 10_500; i += 1) {
    const project = { id: `made-up-${i}`, plan: 'growth', environment: 'production' }
    const verdict = { allowed: true, outcomes: [], reportOnly: [] }
    counter.finished({ project, verdict, startedAt } as unknown as Finished, 3_600_000)
  }
  await counter.close()
  const hour = hourOf(startedAt)
  const rows = rowsOf(hour, await store.read(hour))
  t.equal(rows.length, 10_001)
  t.match(
    rows.find(({ project }) => project === '(others)'),
    { requests: 500 },
  )
})
