/** How every store handles events; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory } from '../../../../services/directory/model.js'
import type { Store } from '../../../../services/directory/store/contract.js'
import type {
  DeadLetter,
  LogEntry,
  StoredEvent,
} from '../../../../services/directory/store/event-contract.js'
import { claimed, early, forAMoment, page, sequences, tell } from './store-fixtures.js'

const late = '2026-02-01T00:00:00.000Z'

const deadLetter = (
  { id: directoryId, tenant, product }: Directory,
  event: StoredEvent,
  failed: string,
): DeadLetter => ({
  ...event,
  ...{
    directoryId,
    webhookId: 'default',
    tenant,
    product,
    attempts: 11,
    problem: 'the receiver answered 500',
    failed,
    replay: false,
  },
})

const logEntry = ({ id: directoryId, tenant, product }: Directory, created: string): LogEntry => ({
  id: `evt_${randomUUID()}`,
  ...{ directoryId, webhookId: 'default', tenant, product, endpoint: 'https://example.com/', created },
  ...{
    status: 500,
    delivered: false,
    attempts: 1,
    problem: 'the receiver answered 500',
    payload: '{"a.b":1}',
  },
})

/** Adds the cases to the suite of one store. */
export function eventContract(t: Test, store: Store, fresh: () => Promise<Directory>): void {
  const isWaiting = async ({ id }: Directory) => (await store.queuesWithEvents()).includes(id)

  t.test('a delivery is leased to one holder at a time, whose reports advance the outbox', async t => {
    const directory = await fresh()
    await tell(store, directory, 3)
    t.ok(await isWaiting(directory))
    const first = await claimed(store, directory, { now: 1000, until: 2000, limit: 20 })
    t.match(first, { attempts: 0, due: 0, events: [{ body: '{"sequence":1}', created: early }] })
    t.same(sequences(first), [1, 2, 3])
    const waiting = await store.waitingEvents()
    const asked = { now: 1500, until: 2600, limit: 20 }
    t.same(await store.claimDelivery(directory.id, asked), { kind: 'held' })
    const renewed = await claimed(store, directory, { ...asked, fence: first.fence })
    t.equal(renewed.fence, first.fence)
    const half = { delivered: 2, attempts: 1, due: 0, until: 2600 }
    t.ok(await store.reportDelivery(directory.id, first.fence, half))
    const second = await claimed(store, directory, { now: 2600, until: 3000, limit: 20 })
    t.ok(second.fence > first.fence, 'a new lease has a higher fence')
    t.same([second.attempts, sequences(second)], [1, [3]])
    const rest = { delivered: 3, attempts: 0, due: 0, until: 0 }
    t.equal(
      await store.reportDelivery(directory.id, first.fence, rest),
      false,
      'a report under a lost lease is refused',
    )
    t.same(sequences(await claimed(store, directory, { now: 3000, until: 3000, limit: 20 })), [3])
    const { fence } = await claimed(store, directory, { now: 3000, until: 4000, limit: 20 })
    t.ok(await store.reportDelivery(directory.id, fence, rest))
    t.equal(await store.waitingEvents(), waiting - 3, 'delivered events no longer count as waiting')
    t.same(await store.claimDelivery(directory.id, asked), { kind: 'nothing' })
    t.notOk(await isWaiting(directory))
    t.same(await store.claimDelivery('unknown', asked), { kind: 'nothing' })
  })

  t.test('of many simultaneous claims exactly one gets the lease', async t => {
    const directory = await fresh()
    await tell(store, directory, 1)
    for (let now = 1000; now < 5000; now += 1000) {
      const asked = Array.from({ length: 8 }, () =>
        store.claimDelivery(directory.id, { now, until: now + 1000, limit: 20 }),
      )
      const claims = await Promise.all(asked)
      t.equal(claims.filter(claim => claim.kind === 'delivery').length, 1, `at ${now}`)
    }
  })

  t.test('a failed delivery waits until it is due, unless it is hastened', async t => {
    const directory = await fresh()
    await tell(store, directory, 2)
    const { fence } = await claimed(store, directory)
    await store.reportDelivery(directory.id, fence, { attempts: 3, due: 5000, until: 0 })
    const asked = { now: 4999, until: 4999, limit: 20 }
    t.same(await store.claimDelivery(directory.id, asked), { kind: 'later', at: 5000 })
    t.match(await claimed(store, directory, { ...asked, hasten: true }), { attempts: 3, due: 5000 })
    t.same(sequences(await claimed(store, directory, { ...asked, now: 5000, limit: 1 })), [1])
  })

  t.test('the feed has every event in order, queued or not, delivered or not', async t => {
    const directory = await fresh()
    await tell(store, directory, 2, { to: [] })
    t.notOk(await isWaiting(directory), 'without a webhook nothing is queued')
    const [third] = await tell(store, directory, 2)
    const delivery = await claimed(store, directory)
    t.same(sequences(delivery), [3, 4])
    const done = { delivered: 4, attempts: 0, due: 0, until: 0 }
    await store.reportDelivery(directory.id, delivery.fence, done)
    const all = await store.feed(directory.id, 0, 100)
    t.same([all.last, sequences(all)], [4, [1, 2, 3, 4]])
    t.same(await store.feed(directory.id, 2, 1), { last: 4, events: [third] })
    t.same(await store.feed(directory.id, 4, 10), { last: 4, events: [] })
  })

  t.test('a dead letter is kept with its reason, can be replayed, and is gone once delivered', async t => {
    const directory = await fresh()
    const other = await fresh()
    const [one, two, three] = (await tell(store, directory, 3)) as [StoredEvent, StoredEvent, StoredEvent]
    const [a, b] = [deadLetter(directory, one, early), deadLetter(directory, two, late)]
    const { fence } = await claimed(store, directory)
    const report = { delivered: 2, dead: [a, b], attempts: 0, due: 0, until: 0 }
    t.ok(await store.reportDelivery(directory.id, fence, report))
    t.same(await store.deadLetters({ directoryId: directory.id }, page), [b, a], 'newest letters are first')
    t.same(await store.deadLetters(directory, { ...page, after: { created: late, id: b.id } }), [a])
    t.same(await store.deadLetters(other, page), [])
    t.same(await store.deadLetter(one.id), a)

    t.equal(await store.replay(other.id, { id: one.id }), 0, 'only its directory can replay a letter')
    t.equal(await store.replay(directory.id, { id: one.id }), 1)
    t.equal((await store.deadLetter(one.id))?.replay, true)
    const first = await claimed(store, directory)
    t.same([first.replays.map(letter => letter.id), sequences(first)], [[one.id], [three.sequence]])
    const again = { ...a, attempts: 12, problem: 'no answer', failed: late }
    await store.reportDelivery(directory.id, first.fence, {
      failedAgain: [again],
      attempts: 0,
      due: 9000,
      until: 0,
    })
    t.same(await store.deadLetter(one.id), again, 'a dead letter whose replay fails is kept')
    t.equal((await store.claimDelivery(directory.id, forAMoment)).kind, 'later', 'the next delivery waits')

    t.equal(await store.replay(directory.id, { webhookId: 'default', after: 0 }), 2)
    t.ok(await isWaiting(directory))
    const second = await claimed(store, directory)
    t.same([second.replays.map(letter => letter.id), second.events], [[one.id, two.id], []])
    const revived = { revived: [one.id, two.id], attempts: 0, due: 0, until: 0 }
    await store.reportDelivery(directory.id, second.fence, revived)
    t.same(await store.deadLetters({ directoryId: directory.id }, page), [])
    const { fence: third } = await claimed(store, directory)
    await store.reportDelivery(directory.id, third, { dead: [a, b], attempts: 0, due: 0, until: 0 })
    t.same([await store.deleteDeadLetter(a.id), await store.deleteDeadLetter(a.id)], [true, false])
    t.same(await store.deadLetters({ directoryId: directory.id }, page), [b])
    t.equal(await store.replay(directory.id, { id: b.id }), 1)
    const last = await claimed(store, directory)
    t.same(sequences(last), [3])
    await store.deleteDeadLetter(b.id)
    const failed = { failedAgain: [b], attempts: 0, due: 0, until: 0 }
    await store.reportDelivery(directory.id, last.fence, failed)
    t.equal(
      await store.deadLetter(b.id),
      undefined,
      'a dead letter that is deleted during its replay is not restored',
    )
  })

  t.test('the webhook log has one entry per message, whatever the number of attempts', async t => {
    const directory = await fresh()
    await tell(store, directory, 1)
    const entry = logEntry(directory, early)
    const newer = logEntry(directory, late)
    const { fence } = await claimed(store, directory)
    const note = (log: LogEntry[]) =>
      store.reportDelivery(directory.id, fence, { log, attempts: 0, due: 0, until: 0 })
    await note([entry, newer])
    const outcome = { status: 204, delivered: true, attempts: 2, problem: null }
    await note([{ ...entry, ...outcome, created: late }])
    t.same(
      await store.webhookLogEntry(entry.id),
      { ...entry, ...outcome },
      'the entry keeps the time of the first attempt',
    )
    t.same(await store.webhookLog(directory, page), [newer, { ...entry, ...outcome }])
    t.same(await store.webhookLog({ directoryId: directory.id }, { ...page, offset: 1 }), [
      { ...entry, ...outcome },
    ])
    await store.deleteWebhookLog({ directoryId: directory.id })
    t.same(await store.webhookLog(directory, page), [])
    t.equal(await store.webhookLogEntry(entry.id), undefined)
  })

  t.test('old records are pruned, except events that still wait for their delivery', async t => {
    const directory = await fresh()
    await tell(store, directory, 2)
    const events = await tell(store, directory, 2, { created: late })
    const { fence } = await claimed(store, directory)
    const dead = events.map((event, index) => deadLetter(directory, event, index === 0 ? early : late))
    const log = [logEntry(directory, early), logEntry(directory, late)]
    await store.reportDelivery(directory.id, fence, {
      delivered: 1,
      dead,
      log,
      attempts: 0,
      due: 0,
      until: 0,
    })
    const middle = '2026-01-15T00:00:00.000Z'
    while (await store.pruneSome({ log: middle, events: middle, dead: middle }));
    t.same(
      (await store.webhookLog(directory, page)).map(({ created }) => created),
      [late],
    )
    t.same(
      (await store.deadLetters(directory, page)).map(({ failed }) => failed),
      [late],
    )
    t.same(sequences(await claimed(store, directory)), [2, 3, 4])
    t.same(sequences(await store.feed(directory.id, 2, 10)), [3, 4])
  })

  t.test('a removed directory leaves no events, dead letters or log entries', async t => {
    const directory = await fresh()
    const [event] = (await tell(store, directory, 2)) as [StoredEvent]
    const { fence } = await claimed(store, directory)
    const dead = [deadLetter(directory, event, early)]
    const log = [logEntry(directory, early)]
    await store.reportDelivery(directory.id, fence, {
      delivered: 1,
      dead,
      log,
      attempts: 0,
      due: 0,
      until: 0,
    })
    await store.removeDirectory(directory.id)
    while (await store.purgeSome());
    t.notOk(await isWaiting(directory))
    t.same(await store.feed(directory.id, 0, 9), { last: 0, events: [] })
    t.same([await store.deadLetters(directory, page), await store.webhookLog(directory, page)], [[], []])
  })
}
