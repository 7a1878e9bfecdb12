import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import type { Directory, Resource, ResourceType } from '../../../services/directory/model.js'
import { termsOf } from '../../../services/directory/scim/terms.js'
import type { Head, Store, Write } from '../../../services/directory/store/contract.js'
import { openMongodb } from '../../../services/directory/store/mongodb.js'
import { databaseOf } from '../../../services/directory/store/mongodb-connection.js'
import { openSqlite } from '../../../services/directory/store/sqlite.js'
import { createGroup } from '../../../services/directory/store/sqlite-group.js'
import { mongoUrl } from '../../helpers/mongo.js'
import { directoryContract } from './directory-contract.js'
import { claimed, eventContract, forAMoment, sequences } from './event-contract.js'
import { pullContract } from './pull-contract.js'

let clock = Date.parse('2026-01-01T00:00:00Z')
const tick = (): string => new Date(clock++).toISOString()

const newDirectory = (tenant: string = randomUUID(), product = 'app'): Directory => ({
  id: randomUUID(),
  name: 'Test',
  tenant,
  product,
  type: 'okta-scim-v2',
  logWebhookEvents: false,
  deactivated: false,
  scimSecret: 'sealed',
  webhook: { endpoint: 'https://example.com/', secret: 'sealed' },
  created: tick(),
})

const newResource = (directory: Directory, type: ResourceType, name: string, more: object = {}): Resource => {
  const created = tick()
  const { id: directoryId, tenant, product } = directory
  const raw = { ...(type === 'user' ? { userName: name } : { displayName: name }), ...more }
  const identity = { type, id: randomUUID(), directoryId, tenant, product }
  return { ...identity, created, modified: created, label: name, raw }
}

const save = (resource: Resource, kind: 'create' | 'replace' = 'create'): Write => ({
  kind,
  resource,
  terms: termsOf(resource),
})

async function headOf(store: Store, directory: Directory): Promise<Head> {
  const head = await store.head(directory.id)
  if (!head) throw new Error('the directory is gone')
  return head
}

async function write(store: Store, directory: Directory, writes: Write[], eventCount = 0): Promise<void> {
  const head = await headOf(store, directory)
  const events = Array.from({ length: eventCount }, (_, index) => {
    const sequence = head.sequence + index + 1
    return { id: randomUUID(), sequence, created: tick(), body: JSON.stringify({ sequence }) }
  })
  const made = await store.commit(directory.id, head, { writes, events, queued: true })
  if (!made) throw new Error('the head was stale')
  await made.kept
}

const idle = { flush: async () => undefined, flushNow: () => undefined }
const page = { offset: 0, limit: 100 }
const ids = (resources: Resource[]): string[] => resources.map(resource => resource.id)

function contract(t: Test, store: Store): void {
  const fresh = async (tenant?: string, product?: string): Promise<Directory> => {
    const directory = newDirectory(tenant, product)
    await store.createDirectory(directory)
    return directory
  }

  t.test('directories are found by id, and by tenant and product in order of creation', async t => {
    const first = await fresh('acme', 'app')
    const second = await fresh('acme', 'app')
    await fresh('acme', 'other')
    t.same(await store.directory(first.id), first)
    t.equal(await store.directory('unknown'), undefined)
    t.equal(await store.directory('{"$ne":null}'), undefined)
    const scope = { tenant: 'acme', product: 'app' }
    t.same(await store.directories(scope, page), [first, second])
    t.same(await store.directories(scope, { offset: 1, limit: 1 }), [second])
    t.ok(await store.oldestDirectory())
  })

  t.test('a resource comes back as it was written, whatever its attribute names and values', async t => {
    const directory = await fresh()
    const more = {
      'urn:x:2.0:User': { 'a.b': 1, $set: { $gt: '' }, '': '\u0000"\\ud800' },
      list: [[1.5], true],
    }
    const user = newResource(directory, 'user', 'Ada', more)
    await write(store, directory, [save(user)])
    t.same(await store.resource({ directoryId: directory.id }, 'user', user.id), user)
    t.same(await store.resource(directory, 'user', user.id), user, 'by tenant and product')
    t.equal(await store.resource({ directoryId: directory.id }, 'group', user.id), undefined)
    t.equal(await store.resource({ directoryId: randomUUID() }, 'user', user.id), undefined)
    t.equal(await store.resource({ tenant: directory.tenant, product: 'x' }, 'user', user.id), undefined)
    t.same(ids(await store.resourcesById(directory.id, 'user', [user.id, 'unknown'])), [user.id])
    t.same(await store.idsAmong(directory.id, 'user', [user.id, 'unknown']), new Set([user.id]))
    t.same(await store.idsAmong(directory.id, 'group', [user.id]), new Set())
  })

  t.test('lists keep the order of creation, page by page, over all directories of a tenant', async t => {
    const one = await fresh('many', 'app')
    const two = await fresh('many', 'app')
    const users = [one, two, one, one, two].map((directory, n) => newResource(directory, 'user', `u${n}`))
    for (const user of users) {
      await write(store, user.directoryId === one.id ? one : two, [save(user)])
    }
    t.same(ids(await store.resources({ tenant: 'many', product: 'app' }, 'user', page)), ids(users))
    t.same(
      ids(await store.resources({ tenant: 'many', product: 'app' }, 'user', { offset: 1, limit: 2 })),
      ids(users.slice(1, 3)),
    )
    t.equal(await store.count(one.id, 'user'), 3)
    t.equal(await store.count(one.id, 'group'), 0)
    const own = users.filter(user => user.directoryId === one.id)
    const scan = { directoryId: one.id, type: 'user', limit: 2 } as const
    t.same(ids(await store.scan(scan)), ids(own.slice(0, 2)))
    t.same(ids(await store.scan({ ...scan, after: own[1] })), ids(own.slice(2)))
  })

  t.test('terms follow a rename: the old name is free, the new one found', async t => {
    const directory = await fresh()
    const user = newResource(directory, 'user', 'Before')
    const renamed = { ...user, raw: { userName: 'After' }, label: 'After', modified: tick() }
    await write(store, directory, [save(user)])
    await write(store, directory, [save(renamed, 'replace')])
    const find = async (holder: Resource) =>
      ids(
        await store.scan({
          directoryId: directory.id,
          type: 'user',
          terms: termsOf(holder),
          limit: 9,
        }),
      )
    t.same(await find(user), [])
    t.same(await find(renamed), [user.id])
    t.same(await store.scan({ directoryId: directory.id, type: 'user', terms: [], limit: 9 }), [])
    t.same(await store.resource({ directoryId: directory.id }, 'user', user.id), renamed)
    await write(store, directory, [{ kind: 'delete', id: user.id }])
    const next = newResource(directory, 'user', 'Next')
    await write(store, directory, [save(next)])
    t.same(await find(user), [], 'and who comes next does not inherit them')
    t.same(await find(renamed), [])
    t.same(await find(next), [next.id])
  })

  t.test('memberships are pairs that come, go and vanish with either side', async t => {
    const directory = await fresh()
    const users = ['a', 'b', 'c'].map(name => newResource(directory, 'user', name))
    const groups = ['g', 'h'].map(name => newResource(directory, 'group', name))
    const [g, h] = ids(groups) as [string, string]
    const [a, b, c] = ids(users) as [string, string, string]
    await write(
      store,
      directory,
      [...users, ...groups].map(each => save(each)),
    )
    await write(store, directory, [
      { kind: 'join', groupId: g, userIds: [a, b, c] },
      { kind: 'join', groupId: h, userIds: [a] },
    ])
    const labels = async (id: string) => (await store.members(id, page)).map(member => member.label).sort()
    t.same(await labels(g), ['a', 'b', 'c'])
    t.same(await store.members(g, { offset: 1, limit: 1 }), (await store.members(g, page)).slice(1, 2))
    t.same(await store.membersAmong(h, [a, b, 'unknown']), new Set([a]))
    t.same((await store.groupIdsOf(a)).sort(), [g, h].sort())
    await write(store, directory, [{ kind: 'leave', groupId: g, userIds: [b] }])
    t.same(await labels(g), ['a', 'c'])
    await write(store, directory, [{ kind: 'join', groupId: g, userIds: [b] }])
    t.same(await labels(g), ['a', 'b', 'c'], 'who left can join again')
    await write(store, directory, [{ kind: 'delete', id: a }])
    t.same([await labels(g), await labels(h), await store.groupIdsOf(a)], [['b', 'c'], [], []])
    t.equal(await store.resource({ directoryId: directory.id }, 'user', a), undefined)
    t.equal(await store.count(directory.id, 'user'), 2)
    await write(store, directory, [{ kind: 'delete', id: g }])
    t.same([await labels(g), await store.groupIdsOf(b)], [[], []])
  })

  t.test('of two changes computed from one head only the first is kept, events and all', async t => {
    const directory = await fresh()
    const head = await headOf(store, directory)
    const change = (name: string) => ({
      writes: [save(newResource(directory, 'user', name))],
      events: [{ id: `evt_${name}`, sequence: 1, created: tick(), body: '{}' }],
      queued: true,
    })
    const kept = await Promise.all(
      ['x', 'y', 'z'].map(name => store.commit(directory.id, head, change(name))),
    )
    t.equal(kept.filter(Boolean).length, 1)
    t.equal(await store.count(directory.id, 'user'), 1)
    t.same(await headOf(store, directory), { version: head.version + 1, sequence: 1 })
    t.equal((await claimed(store, directory)).events.length, 1)
    t.equal(await store.head('unknown'), undefined)
  })

  directoryContract(t, store, { fresh, newResource, save, write })
  eventContract(t, store, fresh)
  pullContract(t, store, fresh)

  t.test('a change with thousands of members and megabytes of events is one change', async t => {
    const directory = await fresh()
    const group = newResource(directory, 'group', 'big')
    const userIds = Array.from({ length: 1500 }, () => randomUUID())
    const head = await headOf(store, directory)
    const body = `"${'x'.repeat(4000)}"`
    const events = userIds.map((id, index) => ({ id, sequence: index + 1, created: tick(), body }))
    t.ok(
      await store.commit(directory.id, head, {
        writes: [save(group), { kind: 'join', groupId: group.id, userIds }],
        events,
        queued: true,
      }),
    )
    t.equal((await store.membersAmong(group.id, userIds)).size, 1500)
    t.equal((await headOf(store, directory)).sequence, 1500)
    t.same(sequences(await claimed(store, directory)).slice(0, 3), [1, 2, 3])
    t.equal((await store.feed(directory.id, 0, 5000)).events.length, 1500)
  })
}

t.test('SQLite', async t => {
  const folder = t.testdir()
  const store = openSqlite(join(folder, 'directory.db'))
  t.teardown(() => store.close())
  contract(t, store)

  t.test('what was committed is there for the next process', async t => {
    const directory = newDirectory()
    await store.createDirectory(directory)
    await write(store, directory, [save(newResource(directory, 'user', 'kept'))], 1)
    const other = openSqlite(join(folder, 'directory.db'))
    t.teardown(() => other.close())
    t.equal(await other.count(directory.id, 'user'), 1)
    t.same(await other.head(directory.id), { version: 1, sequence: 1 })
  })

  t.test('changes that come together are flushed together, and are told only then', async t => {
    const statements: string[] = []
    const group = createGroup(text => statements.push(text.split(' ')[0] ?? ''), {
      flush: async () => void statements.push('flush'),
      flushNow: () => void statements.push('flush now'),
    })
    const told: string[] = []
    const change = (name: string) => {
      const { kept } = group.join(() => name)
      return kept.then(() => told.push(name))
    }
    const changes = ['a', 'b', 'c'].map(change)
    t.throws(() => group.join(() => JSON.parse('{')), 'one that fails takes no other along')
    await Promise.resolve()
    t.same(told, [])
    await Promise.all(changes)
    t.same(told, ['a', 'b', 'c'])
    const made = ['SAVEPOINT', 'RELEASE']
    t.same(statements, ['BEGIN', ...made, ...made, 'SAVEPOINT', 'ROLLBACK', 'COMMIT', 'flush'])
    group.flush()
    t.equal(statements.at(-1), 'flush', 'nothing to flush, nothing done')
    const later = group.join(() => undefined).kept
    group.alone(() => statements.push('alone'))
    await later
    t.same(statements.slice(9), ['BEGIN', 'COMMIT', 'flush now', 'alone', 'flush now'])
  })

  t.test(
    'a first change that fails leaves nothing, and those that come after it in the same turn stand',
    async t => {
      const directory = newDirectory()
      await store.createDirectory(directory)
      const [first, second] = ['first', 'second'].map(name => newResource(directory, 'user', name))
      const [broken, good] = [{ ...first, label: null }, second].map(user =>
        write(store, directory, [save(user as Resource)], 1),
      )
      await t.rejects(broken as Promise<unknown>, /NOT NULL/)
      await good
      t.equal(await store.count(directory.id, 'user'), 1)
      t.same(await store.head(directory.id), { version: 1, sequence: 1 })
    },
  )

  t.test('a commit that fails undoes all changes of its group, and the next group works', async t => {
    const statements: string[] = []
    let full = true
    const group = createGroup(text => {
      statements.push(text)
      if (full && text === 'COMMIT') throw new Error('the disk is full')
    }, idle)
    const changes = [1, 2].map(() => group.join(() => undefined).kept)
    t.same(
      (await Promise.allSettled(changes)).map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    t.equal(statements.at(-1), 'ROLLBACK')
    full = false
    await group.join(() => undefined).kept
    t.equal(statements.at(-1), 'COMMIT')
  })

  t.test(
    'what a commit made before the disk failed is not confirmed, nor is anything told of it',
    async t => {
      const fail = () => {
        throw new Error('the disk is broken')
      }
      const group = createGroup(() => undefined, { flush: async () => fail(), flushNow: fail })
      await t.rejects(group.join(() => undefined).kept, { message: 'the disk is broken' })
      await group.settled()
      const unconfirmed = group.join(() => undefined).kept
      t.throws(() => group.flush(), { message: 'the disk is broken' })
      await t.rejects(unconfirmed, { message: 'the disk is broken' })
    },
  )

  t.test('what is told while a flush is under way is flushed first', async t => {
    let now = 0
    let done = (): void => undefined
    const disk = { flush: () => new Promise<void>(resolve => (done = resolve)), flushNow: () => void now++ }
    const group = createGroup(() => undefined, disk)
    const { kept } = group.join(() => undefined)
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    group.flush()
    t.equal(now, 1)
    done()
    await kept
    await group.settled()
    group.flush()
    t.equal(now, 1, 'and not once more afterwards')
  })

  t.test('a change that ends the transaction itself fails with all that were made before it', async t => {
    let broken = false
    const group = createGroup(text => {
      if (broken && text.startsWith('ROLLBACK')) throw new Error('no transaction is active')
    }, idle)
    const before = group.join(() => undefined).kept
    broken = true
    t.throws(() =>
      group.join(() => {
        throw new Error('the disk is full')
      }),
    )
    await t.rejects(before, { message: 'the disk is full' })
    broken = false
    await group.join(() => undefined).kept
  })
})

t.test('the database is the one the URL names, else sluice', async t => {
  for (const [url, database] of [
    ['mongodb://localhost', 'sluice'],
    ['mongodb://u:p@a:1,b:2/?replicaSet=r', 'sluice'],
    ['mongodb+srv://a.example?w=1', 'sluice'],
    ['mongodb://a:1,b:2/acme?authSource=admin', 'acme'],
    ['mongodb://a/a%20b', 'a b'],
  ] as const) {
    t.equal(databaseOf(url), database, url)
  }
})

t.test('MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const store = await openMongodb(url)
  t.teardown(() => store.close())
  contract(t, store)

  t.test(
    'a change whose process died after the commit is finished by the next one, also when repeated',
    async t => {
      const client = new MongoClient(url)
      t.teardown(() => client.close())
      const commits = client.db().collection<{ _id: string; pending: object }>('directory_commits')
      const directory = newDirectory()
      await store.createDirectory(directory)
      const user = newResource(directory, 'user', 'kept')
      const group = newResource(directory, 'group', 'team')
      await write(store, directory, [save(group)])
      // What the process had written when it died: the committed change, nothing of it spread.
      const item = [
        save(user),
        { kind: 'join', groupId: group.id, userIds: [user.id] },
        {
          kind: 'event',
          event: { id: 'evt_1', sequence: 1, created: '2026-01-01T00:00:00.000Z', body: '{}' },
          queued: true,
        },
      ]
      const pending = { id: 'dead', parts: 0, body: JSON.stringify(item), at: Date.now() - 60_000 }
      const _id = `${directory.id}/0000000000000002`
      const rest = { directory: directory.id, version: 2, sequence: 1 }
      await commits.insertOne({ _id, pending, ...rest })
      t.ok((await store.directoriesWithEvents()).includes(directory.id), 'found without another write')
      t.same(await store.head(directory.id), { version: 2, sequence: 1 })
      t.same(await store.resource({ directoryId: directory.id }, 'user', user.id), user)
      t.same(await store.members(group.id, page), [{ userId: user.id, label: 'kept' }])
      const { fence } = await claimed(store, directory)
      await store.reportDelivery(directory.id, fence, { delivered: 1, attempts: 0, due: 0, until: 0 })
      await write(store, directory, [{ kind: 'delete', id: user.id }])

      await commits.updateOne({ _id }, { $set: { pending } })
      await store.directoriesWithEvents()
      t.same(await store.head(directory.id), { version: 3, sequence: 1 })
      t.equal(
        await store.resource({ directoryId: directory.id }, 'user', user.id),
        undefined,
        'not brought back',
      )
      t.same(await store.members(group.id, page), [])
      t.same(await store.claimDelivery(directory.id, forAMoment), { kind: 'nothing' }, 'not delivered again')
      t.equal((await store.feed(directory.id, 0, 9)).events.length, 1, 'nor told twice in the feed')
      const left = client
        .db()
        .collection('directory_memberships')
        .find({ group: { $exists: false } })
      t.ok(
        (await left.toArray()).every(tombstone => tombstone.deletedAt),
        'what is left of it will be swept',
      )
    },
  )
})
