/** How every store handles directories; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory, Resource, ResourceType } from '../../../../services/directory/model.js'
import { purgeBatch, type Store, type Write } from '../../../../services/directory/store/contract.js'

export interface Tools {
  fresh(tenant?: string, product?: string): Promise<Directory>
  newResource(directory: Directory, type: ResourceType, name: string): Resource
  save(resource: Resource): Write
  write(store: Store, directory: Directory, writes: Write[], eventCount?: number): Promise<void>
}

const page = { offset: 0, limit: 5000 }

/** Adds the cases to the suite of one store. */
export function directoryContract(t: Test, store: Store, tools: Tools): void {
  const { fresh, newResource, save, write } = tools

  t.test('a directory is replaced only if it has not changed since it was read', async t => {
    const before = await fresh()
    const after = { ...before, name: 'After', webhook: undefined, deactivated: true }
    t.equal(await store.replaceDirectory(before, after), true)
    t.match(await store.directory(before.id), { name: 'After', deactivated: true, tenant: before.tenant })
    t.equal(await store.replaceDirectory(before, { ...before, name: 'Late' }), false)
    const read = await store.directory(before.id)
    t.equal(read?.name, 'After')
    t.equal(
      read && (await store.replaceDirectory(read, before)),
      true,
      'a directory that was read again can be replaced',
    )
    t.same(await store.directory(before.id), before)
    t.equal(await store.replaceDirectory({ ...before, id: 'unknown' }, after), false)
  })

  t.test('the directories of a product are listed across all tenants, from a given place on', async t => {
    const product = randomUUID()
    const made: Directory[] = []
    for (const tenant of ['a', 'b', 'a']) made.push(await fresh(tenant, product))
    await fresh('a', randomUUID())
    const [first, second, third] = made
    t.same(await store.directories({ product }, page), made)
    t.same(await store.directories({ product }, { ...page, after: first }), [second, third])
    t.same(await store.directories({ tenant: 'a', product }, { ...page, after: first }), [third])
    t.same(await store.directories({ product }, { ...page, after: third }), [])
  })

  t.test('all directories are listed in order of creation, from a given place on', async t => {
    const made = [await fresh(), await fresh(), await fresh()]
    const [first, second, third] = made
    t.same(await store.directories('all', { offset: 0, limit: 2, after: first }), [second, third])
    t.same(await store.directories('all', { offset: 0, limit: 1, after: second }), [third])
    t.same(await store.directories('all', { ...page, after: third }), [])
    t.same((await store.directories('all', page)).slice(-3), made)
    t.same(await store.newestDirectory(), third)
  })

  t.test(
    'lists of users and members continue from a given place, even among equal creation times',
    async t => {
      const directory = await fresh()
      const one = newResource(directory, 'user', 'a')
      const twins = ['b', 'c', 'd'].map(name => ({
        ...newResource(directory, 'user', name),
        created: one.created,
      }))
      const users = [one, ...twins].sort((a, b) => (a.id < b.id ? -1 : 1))
      const group = newResource(directory, 'group', 'g')
      await write(
        store,
        directory,
        [...users, group].map(each => save(each)),
      )
      const userIds = users.map(user => user.id)
      await write(store, directory, [{ kind: 'join', groupId: group.id, userIds }])
      const scope = { directoryId: directory.id }
      for (const [index, after] of users.entries()) {
        const rest = userIds.slice(index + 1)
        const part = { ...page, after }
        t.same(
          (await store.resources(scope, 'user', part)).map(user => user.id),
          rest,
        )
        t.same(
          (await store.resources(directory, 'user', part)).map(user => user.id),
          rest,
        )
        t.same(
          (await store.members(group.id, part)).map(member => member.userId),
          rest,
        )
      }
    },
  )

  t.test('a removed directory is gone at once, and its contents are purged in pieces', async t => {
    const tenant = randomUUID()
    const gone = await fresh(tenant)
    const kept = await fresh(tenant)
    const held = async (directory: Directory) => [
      await store.count(directory.id, 'user'),
      await store.count(directory.id, 'group'),
      (await store.feed(directory.id, 0, 10)).events.length,
    ]
    const groups: Record<string, string> = {}
    for (const [directory, count] of [
      [gone, purgeBatch + 5],
      [kept, 3],
    ] as const) {
      const users = Array.from({ length: count }, (_, n) => newResource(directory, 'user', `u${n}`))
      const group = newResource(directory, 'group', 'g')
      groups[directory.id] = group.id
      const userIds = users.slice(0, 3).map(user => user.id)
      await write(
        store,
        directory,
        [...users, group].map(each => save(each)),
        2,
      )
      await write(store, directory, [{ kind: 'join', groupId: group.id, userIds }])
    }
    t.equal(await store.removeDirectory(gone.id), true)
    t.equal(await store.directory(gone.id), undefined)
    t.equal(await store.removeDirectory(gone.id), false)
    t.equal(await store.removeDirectory('unknown'), false)
    let pieces = 0
    while (await store.purgeSome()) pieces++
    t.ok(pieces > 2, 'the contents are purged in several pieces')
    t.equal(await store.purgeSome(), false)
    t.same(await held(gone), [0, 0, 0])
    t.same(await store.members(groups[gone.id] ?? '', page), [])
    t.equal(await store.head(gone.id), undefined)
    t.notOk((await store.queuesWithEvents()).includes(gone.id))
    t.same(await held(kept), [3, 1, 2], 'the other directory of the tenant is unchanged')
    t.equal((await store.members(groups[kept.id] ?? '', page)).length, 3)
    t.same(await store.directories({ tenant, product: 'app' }, page), [kept])
  })
}
