/** How every store handles pulls of external directories; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory } from '../../../../services/directory/model.js'
import type { PullState, Store } from '../../../../services/directory/store/contract.js'

const stateOf = (started: string, outcome: PullState['outcome'] = 'running'): PullState => ({
  outcome,
  started,
  finished: null,
  problem: 'a sentence',
  usersFrom: 'users',
  counts: {
    users: { created: 1, updated: 2, deleted: 3 },
    groups: { created: 4, updated: 5, deleted: 6 },
    memberships: { added: 7, removed: 8 },
  },
})

/** Adds the cases to the suite of one store. */
export function pullContract(t: Test, store: Store, fresh: () => Promise<Directory>): void {
  t.test('only enlisted directories can be pulled, until they are removed', async t => {
    const { id } = await fresh()
    t.equal(await store.claimPull(id, { now: 1000, until: 2000 }), undefined)
    await store.enlistPull(id)
    await store.enlistPull(id)
    t.equal((await store.pulledDirectories()).filter(other => other === id).length, 1)
    t.same(await store.pullStates([id, randomUUID()]), new Map())
    const fence = (await store.claimPull(id, { now: 1000, until: 2000 })) ?? 0
    await store.reportPull(id, fence, { until: 0, state: stateOf('a', 'complete') })
    await store.enlistPull(id)
    t.equal(
      (await store.pullStates([id])).get(id)?.state.outcome,
      'complete',
      'enlisting again keeps the state',
    )
    t.equal((await store.pulledDirectories()).filter(other => other === id).length, 1)
    await store.removeDirectory(id)
    while (await store.purgeSome());
    t.notOk((await store.pulledDirectories()).includes(id))
    t.same(await store.pullStates([id]), new Map())
  })

  t.test('a pull is leased to one process, and a report under a lost lease is refused', async t => {
    const { id } = await fresh()
    await store.enlistPull(id)
    const first = (await store.claimPull(id, { now: 1000, until: 2000 })) ?? 0
    t.ok(first > 0)
    t.equal(
      await store.claimPull(id, { now: 1999, until: 5000 }),
      undefined,
      'a leased pull cannot be claimed',
    )
    t.equal(await store.reportPull(id, first, { until: 3000, state: stateOf('first') }), true)
    t.equal(await store.claimPull(id, { now: 2500, until: 5000 }), undefined, 'a report renews the lease')
    t.same((await store.pullStates([id])).get(id), { state: stateOf('first'), until: 3000 })

    const second = (await store.claimPull(id, { now: 3001, until: 4000 })) ?? 0
    t.ok(second > first)
    t.same(
      (await store.pullStates([id])).get(id)?.state,
      stateOf('first'),
      'the first state stays until the second process reports',
    )
    t.equal(await store.reportPull(id, first, { until: 9000, state: stateOf('late') }), false)
    t.equal(await store.reportPull(id, second, { until: 0, state: stateOf('second', 'complete') }), true)
    t.same((await store.pullStates([id])).get(id), { state: stateOf('second', 'complete'), until: 0 })

    t.equal(
      await store.claimPull(id, { now: 5000, until: 6000, idleSince: 3000 }),
      undefined,
      'a directory whose pull began after idleSince is not claimed',
    )
    t.ok(await store.claimPull(id, { now: 5000, until: 6000, idleSince: 3001 }))
  })

  t.test('of many simultaneous claims of a pull exactly one succeeds', async t => {
    const { id } = await fresh()
    await store.enlistPull(id)
    for (const now of [1000, 3000, 5000]) {
      const claims = Array.from({ length: 10 }, () => store.claimPull(id, { now, until: now + 1000 }))
      t.equal((await Promise.all(claims)).filter(Boolean).length, 1)
    }
  })
}
