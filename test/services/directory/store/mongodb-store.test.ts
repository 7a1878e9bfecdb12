import { type Document, MongoClient } from 'mongodb'
import t from 'tap'
import { openMongodb } from '../../../../services/directory/store/mongodb/store.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { hearQueries, isServed } from './mongodb-queries.js'
import { storeContract } from './store-contract.js'
import {
  claimed,
  early,
  forAMoment,
  newDirectory,
  newResource,
  page,
  save,
  sequences,
  write,
} from './store-fixtures.js'

t.test('MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const heard = hearQueries(t)
  const store = await openMongodb(`${url}${url.includes('?') ? '&' : '?'}monitorCommands=true`)
  t.teardown(() => store.close())
  storeContract(t, store)

  t.test(
    'a committed change of a dead process is applied once by the next one, even when it is found again',
    async t => {
      const client = new MongoClient(url)
      t.teardown(() => client.close())
      const commits = client.db().collection<{ _id: string; pending: object }>('directory_commits')
      const directory = newDirectory()
      await store.createDirectory(directory)
      const user = newResource(directory, 'user', 'kept')
      const group = newResource(directory, 'group', 'team')
      await write(store, directory, [save(group)])
      // What a process had written when it died: the committed change, not yet applied.
      const item = [
        save(user),
        { kind: 'join', groupId: group.id, userIds: [user.id] },
        {
          kind: 'event',
          event: { id: 'evt_1', sequence: 1, created: early, body: '{}', to: ['default'] },
        },
      ]
      const pending = { id: 'dead', parts: 0, body: JSON.stringify(item), at: Date.now() - 60_000 }
      const _id = `${directory.id}/0000000000000002`
      const rest = { directory: directory.id, version: 2, sequence: 1 }
      await commits.insertOne({ _id, pending, ...rest })
      t.ok(
        (await store.queuesWithEvents()).includes(directory.id),
        'the queued event is found without another write',
      )
      t.same(await store.head(directory.id), { version: 2, sequence: 1 })
      t.same(await store.resource({ directoryId: directory.id }, 'user', user.id), user)
      t.same(await store.members(group.id, page), [{ userId: user.id, label: 'kept' }])
      const { fence } = await claimed(store, directory)
      await store.reportDelivery(directory.id, fence, { delivered: 1, attempts: 0, due: 0, until: 0 })
      await write(store, directory, [{ kind: 'delete', id: user.id }])

      await commits.updateOne({ _id }, { $set: { pending } })
      await store.queuesWithEvents()
      t.same(await store.head(directory.id), { version: 3, sequence: 1 })
      t.equal(
        await store.resource({ directoryId: directory.id }, 'user', user.id),
        undefined,
        'the deleted user is not restored',
      )
      t.same(await store.members(group.id, page), [])
      t.same(
        await store.claimDelivery(directory.id, forAMoment),
        { kind: 'nothing' },
        'the event is not delivered again',
      )
      t.equal((await store.feed(directory.id, 0, 9)).events.length, 1, 'the feed has the event once')
      const memberships = client.db().collection('directory_memberships')
      const tombstones = await memberships.find({ group: { $exists: false } }).toArray()
      t.ok(tombstones.length > 0)
      t.ok(
        tombstones.every(({ deletedAt }) => deletedAt),
        'the remaining membership records are marked for deletion',
      )
    },
  )

  t.test('a removal that a dead process committed is finished and announced by the next one', async t => {
    const client = new MongoClient(url)
    t.teardown(() => client.close())
    const commits = client.db().collection<{ _id: string }>('directory_commits')
    const directory = newDirectory()
    const { id } = directory
    await store.createDirectory(directory)
    const event = { id: 'evt_gone', sequence: 1, created: early, body: '{"sequence":1}', to: ['default'] }
    const items = [
      { kind: 'removal', directory, firstUndelivered: 1 },
      { kind: 'event', event },
    ]
    const pending = { id: 'dead', parts: 0, body: JSON.stringify(items), at: Date.now() - 60_000 }
    await commits.insertOne({
      _id: `${id}/0000000000000001`,
      ...{ directory: id, version: 1, sequence: 1, pending },
    })
    t.ok((await store.queuesWithEvents()).includes(id))
    while (await store.purgeSome());
    t.equal(await store.directory(id), undefined)
    t.same((await store.deletedDirectory(id))?.webhook, directory.webhook)
    t.same(sequences(await claimed(store, directory)), [1])
  })

  t.test('an event of a directory that no longer exists is deleted', async t => {
    const client = new MongoClient(url)
    t.teardown(() => client.close())
    const event = { event: 'evt_late', sequence: 3, created: early, body: '{}' }
    const outbox = client.db().collection<{ _id: string }>('directory_outbox')
    await outbox.insertOne({ _id: 'gone/3', ...event, directory: 'gone' } as { _id: string })
    t.ok((await store.queuesWithEvents()).includes('gone'))
    t.same(await store.claimDelivery('gone', forAMoment), { kind: 'nothing' })
    t.notOk((await store.queuesWithEvents()).includes('gone'))
  })

  t.test('every query of the suite above is served by an index', async t => {
    const client = new MongoClient(url)
    t.teardown(() => client.close())
    const collections = new Set([...heard.values()].map(({ collection }) => collection))
    const indexes = new Map<string, Document[]>()
    for (const name of collections) {
      indexes.set(
        name,
        (await client.db().collection(name).indexes()).map(({ key }) => key),
      )
    }
    t.ok(heard.size > 40, `${heard.size} kinds of queries were recorded`)
    for (const [form, query] of heard) t.ok(isServed(query, indexes.get(query.collection) ?? []), form)
    const [about = []] = indexes.values()
    for (const filter of [{ nobody: 1 }, {}]) {
      const unserved = { collection: '', command: 'find', filter, sort: {} }
      t.notOk(isServed(unserved, about), 'a query that no index serves is noticed')
    }
  })
})

t.test('documents of another version are refused with a message and left as they are', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  await (await openMongodb(url)).close()
  const client = new MongoClient(url)
  t.teardown(() => client.close())
  const settings = client.db().collection<{ _id: string; version: number }>('directory_settings')
  const made = await settings.findOne({ _id: 'tables' })
  for (const [version, message] of [
    [7, /stored by a newer release \(version 7, this release knows 3\)\. Start that release/],
    [1, /stored by another version of this service \(version 1, not 3\)/],
  ] as const) {
    await settings.updateOne({ _id: 'tables' }, { $set: { version } })
    await t.rejects(openMongodb(url), { message })
    t.same(await settings.findOne({ _id: 'tables' }), { ...made, version })
  }
})
