/** How large a page of users with their groups may be, and how long it blocks other work. */
import { setImmediate as breathe } from 'node:timers/promises'
import t from 'tap'
import type { ResourceType } from '../../../../services/directory/model.js'
import type { Store } from '../../../../services/directory/store/contract.js'
import { createIntake } from '../../../../services/directory/sync/intake.js'
import type { ResourceSync } from '../../../../services/directory/sync/resources.js'
import { createSearchQueue } from '../../../../services/directory/sync/search-queue.js'
import { newDirectory, newResource } from '../store/store-fixtures.js'

/**
 * A directory of 300 users, each in all of `groupCount` groups; each query to the store blocks the process for
 * `busyMs`.
 */
function intakeOf(groupCount: number, busyMs = 0) {
  const directory = newDirectory()
  const users = Array.from({ length: 300 }, (_, n) => newResource(directory, 'user', `user${n}`))
  const groups = Array.from({ length: groupCount }, (_, n) => newResource(directory, 'group', `group${n}`))
  const of = (type: ResourceType) => (type === 'user' ? users : groups)
  const byId = new Map(groups.map(group => [group.id, group]))
  const asked: string[][] = []
  const busy = (): void => {
    const until = performance.now() + busyMs
    while (performance.now() < until);
  }
  const store = {
    count: async (_directory: string, type: ResourceType) => of(type).length,
    resources: async (_scope: object, type: ResourceType, page: { offset: number; limit: number }) =>
      of(type).slice(page.offset, page.offset + page.limit),
    resourcesById: async (_directory: string, _type: ResourceType, ids: string[]) => {
      asked.push(ids)
      return ids.map(id => byId.get(id))
    },
    groupIdsOf: async () => {
      busy()
      return groups.map(({ id }) => id)
    },
    members: async () => [],
  }
  const none = {} as ResourceSync
  const intake = createIntake(store as unknown as Store, none, none, createSearchQueue())
  const list = async (types: ResourceType[], startIndex: number) => {
    const page = await intake.search(
      directory,
      types,
      { startIndex, count: 200, attributes: ['userName', 'displayName', 'groups'] },
      '/base',
    )
    const { totalResults, itemsPerPage } = page
    return { totalResults, itemsPerPage, Resources: page.Resources as { id: string; groups?: object[] }[] }
  }
  return { list, users, groups, asked }
}

t.test(
  'a page of users ends before it exceeds 20,000 groups, and the next page continues from there',
  async t => {
    const { list, users, groups, asked } = intakeOf(150)
    const first = await list(['user'], 1)
    t.match(first, { totalResults: 300, itemsPerPage: 133 })
    const display = groups[0]?.label ?? ''
    t.match(first.Resources[0]?.groups?.[0], { value: groups[0]?.id, $ref: /^\/base\/Groups\//, display })
    t.ok(first.Resources.every(user => user.groups?.length === 150))
    t.equal(asked.flat().length, 150, 'a group shared by many users is read once')
    t.ok(asked.every(ids => ids.length <= 100))
    const more = [await list(['user'], 134), await list(['user'], 267)]
    t.same(
      [first, ...more].flatMap(page => page.Resources.map(({ id }) => id)),
      users.map(({ id }) => id),
    )
  },
)

t.test('a single user is shown with all groups, even with more than 20,000', async t => {
  const { Resources } = await intakeOf(20_001).list(['user'], 1)
  t.equal(Resources.length, 1)
  t.equal(Resources[0]?.groups?.length, 20_001)
})

t.test('a user with more than 100,000 groups is refused with advice on what to ask for instead', async t => {
  const { list } = intakeOf(100_001)
  await t.rejects(list(['user'], 1), {
    status: 400,
    scimType: 'tooMany',
    message: /\/Groups with the filter/,
  })
})

t.test('a group with more than 100,000 members is shown without them or not at all', async t => {
  const directory = newDirectory()
  const group = newResource(directory, 'group', 'all')
  let count = 100_001
  const members = async (_group: string, { offset, limit }: { offset: number; limit: number }) =>
    Array.from({ length: Math.min(limit, Math.max(0, count - offset)) }, (_, n) => {
      return { userId: `user${n}`, label: '' }
    })
  const store = { resource: async () => group, members, count: async () => 1, resources: async () => [group] }
  const groups = { replace: async () => group } as unknown as ResourceSync
  const intake = createIntake(store as unknown as Store, {} as ResourceSync, groups, createSearchQueue())
  const asked = { type: 'group', id: group.id, base: '/base' } as const
  const get = (more: object = {}) => intake.handle(directory, { ...asked, method: 'GET', ...more })
  const refusal = { status: 400, scimType: 'tooMany', message: /excludedAttributes=members/ }
  await t.rejects(get(), refusal)
  await t.rejects(intake.search(directory, ['group'], {}, '/base'), refusal)
  const { body } = await get({ asked: { excludedAttributes: ['members'] } })
  t.match(body, { displayName: 'all', members: undefined })
  const replaced = await intake.handle(directory, { ...asked, method: 'PUT', body: {} })
  t.match(replaced, { status: 200, body: { displayName: 'all', members: undefined } })
  count = 7
  const whole = (await get()).body as { members: object[] }
  t.equal(whole.members.length, 7)
})

t.test('a search over both types lists all users before the groups', async t => {
  const { list, users, groups } = intakeOf(150)
  const seen: string[] = []
  while (seen.length < 450) {
    const page = await list(['user', 'group'], seen.length + 1)
    t.equal(page.totalResults, 450)
    seen.push(...page.Resources.map(({ id }) => id))
  }
  t.same(
    seen,
    [...users, ...groups].map(({ id }) => id),
  )
})

t.test('other work gets its turn while a page is built', async t => {
  const { list } = intakeOf(10, 2)
  let turns = 0
  let done = false
  const page = list(['user'], 1).finally(() => {
    done = true
  })
  while (!done) {
    await breathe()
    turns++
  }
  await page
  t.ok(turns >= 10, `${turns} turns in 400 ms of work`)
})
