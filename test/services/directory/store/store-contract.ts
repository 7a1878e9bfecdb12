/** How every store behaves: one suite for all adapters. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory, Resource } from '../../../../services/directory/model.js'
import { termsOf } from '../../../../services/directory/scim/filter-query.js'
import type { Store } from '../../../../services/directory/store/contract.js'
import { directoryContract } from './directory-contract.js'
import { eventContract } from './event-contract.js'
import { linkContract } from './link-contract.js'
import { pullContract } from './pull-contract.js'
import { queueContract } from './queue-contract.js'
import { setupLinkContract } from './setup-link-contract.js'
import {
  claimed,
  headOf,
  ids,
  newDirectory,
  newResource,
  page,
  save,
  sequences,
  tick,
  write,
} from './store-fixtures.js'

/** Adds the cases to the tests of one store. */
export function storeContract(t: Test, store: Store): void {
  const fresh = async (tenant?: string, product?: string): Promise<Directory> => {
    const directory = newDirectory(tenant, product)
    await store.createDirectory(directory)
    return directory
  }

  t.test('directories are found by id, and listed by tenant and product in order of creation', async t => {
    const first = await fresh('acme', 'app')
    const second = await fresh('acme', 'app')
    await fresh('acme', 'other')
    t.same(await store.directory(first.id), first)
    t.equal(await store.directory('unknown'), undefined)
    t.equal(await store.directory('{"$ne":null}'), undefined)
    const scope = { tenant: 'acme', product: 'app' }
    t.same(await store.directories(scope, page), [first, second])
    t.same(await store.directories(scope, { offset: 1, limit: 1 }), [second])
    t.ok(await store.newestDirectory())
  })

  t.test('a resource is read as it was written, whatever its attribute names and values', async t => {
    const directory = await fresh()
    const more = {
      'urn:x:2.0:User': { 'a.b': 1, $set: { $gt: '' }, '': '\u0000"\\ud800' },
      list: [[1.5], true],
    }
    const user = newResource(directory, 'user', 'Ada', more)
    await write(store, directory, [save(user)])
    t.same(await store.resource({ directoryId: directory.id }, 'user', user.id), user)
    t.same(
      await store.resource(directory, 'user', user.id),
      user,
      'the resource is found by tenant and product',
    )
    t.equal(await store.resource({ directoryId: directory.id }, 'group', user.id), undefined)
    t.equal(await store.resource({ directoryId: randomUUID() }, 'user', user.id), undefined)
    t.equal(await store.resource({ tenant: directory.tenant, product: 'x' }, 'user', user.id), undefined)
    t.same(ids(await store.resourcesById(directory.id, 'user', [user.id, 'unknown'])), [user.id])
    t.same(await store.idsAmong(directory.id, 'user', [user.id, 'unknown']), new Set([user.id]))
    t.same(await store.idsAmong(directory.id, 'group', [user.id]), new Set())
  })

  t.test('lists keep the order of creation, page by page, across all directories of a tenant', async t => {
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

  t.test('after a rename a resource is found by its new name and not by the old one', async t => {
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
    t.same(await find(user), [], 'the next resource does not inherit the terms of a deleted one')
    t.same(await find(renamed), [])
    t.same(await find(next), [next.id])
  })

  t.test(
    'resources that share a term are listed in order of creation, even when one is deleted meanwhile',
    async t => {
      const directory = await fresh()
      const users = ['a', 'b', 'c', 'd', 'e', 'f'].map(name =>
        newResource(directory, 'user', name, { displayName: name < 'd' ? 'Ada' : 'Eve' }),
      )
      const [, second, third] = users as [Resource, Resource, Resource]
      for (const user of users) await write(store, directory, [save(user)])
      const terms = [...new Set(users.flatMap(termsOf))]
      const some = { directoryId: directory.id, type: 'user', limit: 2 } as const
      t.same(ids(await store.scan({ ...some, terms })), ids(users.slice(0, 2)))
      t.same(ids(await store.scan({ ...some, terms, after: second })), ids(users.slice(2, 4)))
      await write(store, directory, [{ kind: 'delete', id: third.id }])
      t.same(ids(await store.scan({ ...some, terms, after: third })), ids(users.slice(3, 5)))
      t.same(ids(await store.scan({ ...some, terms, after: users.at(-1) })), [])
      t.equal(await store.count(directory.id, 'user'), 5, 'the count follows the deletion')
    },
  )

  t.test('memberships can be added and removed, and end with their user or group', async t => {
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
    t.same(await store.membersAmong(h, [a, b, 'unknown']), new Map([[a, undefined]]))
    t.same((await store.groupIdsOf(a)).sort(), [g, h].sort())
    await write(store, directory, [{ kind: 'leave', groupId: g, userIds: [b] }])
    t.same(await labels(g), ['a', 'c'])
    await write(store, directory, [{ kind: 'join', groupId: g, userIds: [b] }])
    t.same(await labels(g), ['a', 'b', 'c'], 'a user who left can join again')
    await write(store, directory, [{ kind: 'delete', id: a }])
    t.same([await labels(g), await labels(h), await store.groupIdsOf(a)], [['b', 'c'], [], []])
    t.equal(await store.resource({ directoryId: directory.id }, 'user', a), undefined)
    t.equal(await store.count(directory.id, 'user'), 2)
    await write(store, directory, [{ kind: 'delete', id: g }])
    t.same([await labels(g), await store.groupIdsOf(b)], [[], []])
  })

  t.test('a member is shown as it was sent, else by its own label', async t => {
    const directory = await fresh()
    const [a, b] = ['a', 'b'].map(name => newResource(directory, 'user', name)) as [Resource, Resource]
    const group = newResource(directory, 'group', 'g')
    const { id: groupId } = group
    await write(
      store,
      directory,
      [a, b, group].map(each => save(each)),
    )
    const join = { kind: 'join', groupId, userIds: [a.id, b.id] } as const
    await write(store, directory, [{ ...join, displays: { [a.id]: 'A sent' } }])
    const shown = async () => (await store.members(groupId, page)).map(({ label }) => label).sort()
    t.same(await shown(), ['A sent', 'b'])
    t.same((await store.membersAmong(groupId, [a.id])).get(a.id), 'A sent')
    await write(store, directory, [save({ ...a, label: 'renamed' }, 'replace')])
    await write(store, directory, [{ kind: 'display', groupId, displays: { [b.id]: 'B sent' } }])
    t.same(await shown(), ['A sent', 'B sent'])
    await write(store, directory, [{ kind: 'leave', groupId, userIds: [a.id, b.id] }])
    await write(store, directory, [join])
    t.same(await shown(), ['b', 'renamed'], 'a member that left and joins again is shown as it is sent then')
  })

  t.test('of several changes based on one head only one is stored, with its event', async t => {
    const directory = await fresh()
    const head = await headOf(store, directory)
    const change = (name: string) => ({
      writes: [save(newResource(directory, 'user', name))],
      events: [{ id: `evt_${name}`, sequence: 1, created: tick(), body: '{}', to: ['default'] }],
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
  queueContract(t, store, fresh)
  pullContract(t, store, fresh)
  linkContract(t, store, fresh)
  setupLinkContract(t, store, fresh)

  t.test('a change with thousands of members and megabytes of events is stored as one', async t => {
    const directory = await fresh()
    const group = newResource(directory, 'group', 'big')
    const userIds = Array.from({ length: 1500 }, () => randomUUID())
    const head = await headOf(store, directory)
    const body = `"${'x'.repeat(4000)}"`
    const events = userIds.map((id, index) => ({
      id,
      sequence: index + 1,
      created: tick(),
      body,
      to: ['default'],
    }))
    t.ok(
      await store.commit(directory.id, head, {
        writes: [save(group), { kind: 'join', groupId: group.id, userIds }],
        events,
      }),
    )
    t.equal((await store.membersAmong(group.id, userIds)).size, 1500)
    t.equal((await headOf(store, directory)).sequence, 1500)
    t.same(sequences(await claimed(store, directory)).slice(0, 3), [1, 2, 3])
    t.equal((await store.feed(directory.id, 0, 5000)).events.length, 1500)
  })
}
