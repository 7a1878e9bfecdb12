/** How every store handles several webhooks, and events about a directory itself; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory } from '../../../../services/directory/model.js'
import type { Store } from '../../../../services/directory/store/contract.js'
import type { QueuedEvent } from '../../../../services/directory/store/event-contract.js'
import { holdClocks } from '../../../helpers/clocks.js'
import {
  claimed,
  early,
  forAMoment,
  headOf,
  newResource,
  page,
  save,
  sequences,
  tell,
  write,
} from './store-fixtures.js'

/** Adds the cases to the suite of one store. */
export function queueContract(t: Test, store: Store, fresh: () => Promise<Directory>): void {
  const event = (sequence: number, to = ['default']): QueuedEvent => {
    const body = JSON.stringify({ sequence })
    return { id: `evt_${randomUUID()}`, sequence, created: early, body, to }
  }
  const done = (delivered: number) => ({ delivered, attempts: 0, due: 0, until: 0 })

  t.test('each webhook has a queue of its own with its order, attempts, dead letters and log', async t => {
    const directory = await fresh()
    const { id } = directory
    const second = { id: `${id}.whk_2` }
    const events = [
      ...(await tell(store, directory, 1, { to: ['default', 'whk_2'] })),
      ...(await tell(store, directory, 1, { to: ['whk_2'] })),
      ...(await tell(store, directory, 1)),
    ]
    const queues = await store.queuesWithEvents()
    t.ok([id, second.id].every(queue => queues.includes(queue)))
    const [one, two] = [await claimed(store, directory), await claimed(store, second)]
    t.same(
      [sequences(one), sequences(two)],
      [
        [1, 3],
        [1, 2],
      ],
    )
    const { tenant, product } = directory
    const about = {
      directoryId: id,
      webhookId: 'whk_2',
      tenant,
      product,
      attempts: 11,
      problem: 'x',
      failed: early,
    }
    const [first] = events
    if (!first) throw new Error('no event')
    const dead = { ...about, ...first, id: `${first.id}.whk_2`, replay: false }
    const log = {
      id: `${first.id}.whk_2`,
      directoryId: id,
      webhookId: 'whk_2',
      tenant,
      product,
      endpoint: 'https://x',
    }
    const logged = {
      ...log,
      created: early,
      status: 500,
      delivered: false,
      attempts: 1,
      problem: 'x',
      payload: '{}',
    }
    await store.reportDelivery(second.id, two.fence, { ...done(1), dead: [dead], log: [logged] })
    t.same(
      sequences(await claimed(store, directory)),
      [1, 3],
      'the other webhook still has the event to come',
    )
    t.same(sequences(await claimed(store, second)), [2])
    t.same(await store.deadLetters({ directoryId: id }, page), [dead])
    t.same(await store.webhookLog({ directoryId: id }, page), [logged])

    t.equal(
      await store.replay(id, { webhookId: 'default', after: 0 }),
      0,
      'a webhook has no dead letters of another to replay',
    )
    t.equal(await store.replay(id, { webhookId: 'whk_2', after: 0 }), 1)
    t.ok((await store.queuesWithEvents()).includes(second.id))
    t.same((await claimed(store, directory)).replays, [], 'the other webhook gets no replay')
    const again = await claimed(store, second)
    t.same(again.replays, [{ ...dead, replay: true }])
    await store.reportDelivery(second.id, again.fence, { ...done(2), revived: [dead.id] })
    await store.reportDelivery(id, (await claimed(store, directory)).fence, done(3))
    t.same(await store.claimDelivery(second.id, forAMoment), { kind: 'nothing' })
    t.same(await store.claimDelivery(id, forAMoment), { kind: 'nothing' })
  })

  t.test('an event that waits for one of several webhooks is not pruned', async t => {
    const directory = await fresh()
    await tell(store, directory, 2, { to: ['default', 'whk_2'] })
    const { fence } = await claimed(store, directory)
    await store.reportDelivery(directory.id, fence, done(2))
    const late = '2026-03-01T00:00:00.000Z'
    while (await store.pruneSome({ log: late, events: late, dead: late }));
    t.same(sequences(await claimed(store, { id: `${directory.id}.whk_2` })), [1, 2])
  })

  t.test('a change of a directory and its event are stored together or not at all', async t => {
    const directory = await fresh()
    const head = await headOf(store, directory)
    const after = { ...directory, deactivated: true }
    const announcement = { head, events: [event(1)] }
    const tries = await Promise.all([
      store.replaceDirectory(directory, after, announcement),
      store.replaceDirectory(directory, after, announcement),
    ])
    t.same(tries.sort(), [false, true])
    t.same(await store.directory(directory.id), after)
    t.same(sequences(await store.feed(directory.id, 0, 9)), [1])
    t.same(sequences(await claimed(store, directory)), [1])
    t.equal(
      await store.replaceDirectory(after, directory, announcement),
      false,
      'a change with a stale head is refused',
    )
    await write(store, directory, [save(newResource(directory, 'user', 'next'))], 1)
    t.same(sequences(await store.feed(directory.id, 0, 9)), [1, 2], 'the next event takes the next number')
  })

  t.test('a removal delivers its event after all else is purged, with the directory as it was', async t => {
    const directory = await fresh()
    const { id } = directory
    await write(store, directory, [save(newResource(directory, 'user', 'u'))], 3)
    const { fence } = await claimed(store, directory)
    await store.reportDelivery(id, fence, { attempts: 7, due: 9_000_000, until: 0 })
    const head = await headOf(store, directory)
    const stale = { head: { ...head, version: head.version - 1 }, events: [event(4)] }
    t.equal(await store.removeDirectory(id, stale), false)
    t.same(await store.directory(id), directory)
    const to = ['default', 'whk_2']
    t.equal(await store.removeDirectory(id, { head, events: [event(4, to)] }), true)
    while (await store.purgeSome());
    t.equal(await store.directory(id), undefined)
    t.same(
      [await store.deletedDirectory(id), await store.deletedDirectory('unknown')],
      [directory, undefined],
    )
    t.ok((await store.deletedDirectories()).some(each => each.id === id))
    const resealed = { ...directory, scimSecret: 'again' }
    t.equal(await store.replaceDeletedDirectory(directory, resealed), true)
    t.equal(await store.replaceDeletedDirectory(directory, resealed), false)

    const last = await claimed(store, directory)
    t.same(
      [sequences(last), last.attempts, last.due],
      [[4], 0, 0],
      'the event of the removal has its own count of attempts',
    )
    await store.reportDelivery(id, last.fence, done(4))
    const bounds = { log: early, events: early, dead: early }
    const settle = async () => {
      while (await store.pruneSome(bounds));
      while (await store.purgeSome());
    }
    await settle()
    t.ok(
      await store.deletedDirectory(id),
      'the directory is kept while the second webhook has not got the event',
    )
    const second = { id: `${id}.whk_2` }
    const { tenant, product } = directory
    const about = {
      directoryId: id,
      webhookId: 'whk_2',
      tenant,
      product,
      attempts: 11,
      problem: 'x',
      failed: early,
    }
    const { to: _, ...buried } = event(4)
    const dead = { ...buried, ...about, id: `${buried.id}.whk_2`, replay: false }
    const other = await claimed(store, second)
    await store.reportDelivery(second.id, other.fence, { ...done(4), dead: [dead] })
    await settle()
    t.ok(await store.deletedDirectory(id), 'the directory is kept while a dead letter can be replayed')
    await store.replay(id, { id: dead.id })
    const replay = await claimed(store, second)
    await store.reportDelivery(second.id, replay.fence, { ...done(4), revived: [dead.id] })
    await settle()
    t.equal(await store.deletedDirectory(id), undefined)
    t.same(await store.claimDelivery(id, forAMoment), { kind: 'nothing' })
  })

  t.test('the event of a removal is delivered, however long its receiver was down', async t => {
    const directory = await fresh()
    const { id } = directory
    const head = await headOf(store, directory)
    t.equal(await store.removeDirectory(id, { head, events: [event(1)] }), true)
    while (await store.purgeSome());
    const bounds = { log: early, events: early, dead: early }
    const start = Date.now()
    const clock = holdClocks(t, start)
    const later = async (hours: number) => {
      clock.ms = start + hours * 60 * 60 * 1000
      while (await store.pruneSome(bounds));
      while (await store.purgeSome());
    }
    for (const hours of [2, 4]) {
      await later(hours)
      t.same([await store.deletedDirectory(id), sequences(await claimed(store, directory))], [directory, [1]])
    }
    await store.reportDelivery(id, (await claimed(store, directory)).fence, done(1))
    for (const hours of [5, 7]) await later(hours)
    t.equal(await store.deletedDirectory(id), undefined)
    t.notOk((await store.queuesWithEvents()).includes(id))
  })

  t.test('a removal without receivers leaves nothing', async t => {
    const directory = await fresh()
    const head = await headOf(store, directory)
    t.equal(await store.removeDirectory(directory.id, { head, events: [event(1, [])] }), true)
    while (await store.purgeSome());
    t.equal(await store.deletedDirectory(directory.id), undefined)
    t.same(await store.feed(directory.id, 0, 9), { last: 0, events: [] })
  })
}
