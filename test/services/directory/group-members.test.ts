/** The members of groups in lists and in events, and how they are shown. */
import t from 'tap'
import type { Store } from '../../../services/directory/store/contract.js'
import { listedMembers } from '../../../services/directory/sync/members.js'
import { waitUntil } from '../../helpers/wait.js'
import { onEachDatabase } from './databases.js'
import { type Directory, okta, patchOp, type Service, startService } from './harness.js'

/** The service's users, in the order in which groups list them. */
async function users({ scim }: Directory, count: number): Promise<string[]> {
  const Operations = Array.from({ length: count }, (_, n) => {
    return {
      method: 'POST',
      path: '/Users',
      bulkId: `u${n}`,
      data: okta(`user${n}@x`, { displayName: `User ${n}` }),
    }
  })
  const made: string[] = []
  for (let from = 0; from < count; from += 1000) {
    const { body } = await scim('POST', '/Bulk', { Operations: Operations.slice(from, from + 1000) })
    for (const { location } of body.Operations) made.push(location.split('/').at(-1))
  }
  return made.sort()
}

const asMembers = (ids: readonly string[]) => ids.map(value => ({ value }))
const group = (displayName: string, members?: object[]) => ({ displayName, ...(members ? { members } : {}) })

async function listed(service: Service, { tenant, product }: Directory) {
  return (await service.manage('GET', `/groups?tenant=${tenant}&product=${product}`)).body.data
}
async function told(service: Service, { id }: Directory) {
  const { body } = await service.manage('GET', `/feed?directoryId=${id}&pageLimit=500`)
  return body.data as { event: string; data: { raw: { members?: object[] }; group?: { raw: object } } }[]
}

onEachDatabase(t, 'a list of groups and the events of a group have its members', async (t, service) => {
  const directory = await service.directory()
  const { scim } = directory
  const [a = '', b = '', c = ''] = await users(directory, 3)
  const { body: made } = await scim(
    'POST',
    '/Groups',
    group('Team', [{ value: b, display: 'B sent' }, { value: a }]),
  )
  await scim('POST', '/Groups', group('Empty', []))
  const shown = { a: { value: a, display: 'User 0' }, b: { value: b, display: 'B sent' } }
  const [team, empty] = await listed(service, directory)
  t.same([team.raw.members, empty.raw.members], [[shown.a, shown.b], []])
  t.same([team.members, team.members_truncated], [undefined, undefined])

  await scim('PATCH', `/Groups/${made.id}`, {
    ...patchOp({ op: 'add', path: 'members', value: [{ value: c, display: 'C sent' }] }),
  })
  await scim('PUT', `/Groups/${made.id}`, group('Crew', [{ value: b }, { value: c, display: 'C anew' }]))
  await scim('DELETE', `/Groups/${made.id}`)
  const events = await told(service, directory)
  const of = (name: string) =>
    events.filter(({ event }) => event === name).map(({ data }) => data.raw.members)
  const shownC = { value: c, display: 'C anew' }
  t.same(of('group.created'), [[shown.a, shown.b], []])
  t.same(of('group.updated'), [[shown.b, shownC]], 'as they are after the change')
  t.same(of('group.deleted'), [[shown.b, shownC]])
  const updated = events.find(({ event }) => event === 'group.updated')
  t.match(updated, {
    previous_attributes: { name: 'Team', raw: { displayName: 'Team', members: undefined } },
  })
  const added = events.filter(({ event }) => event === 'group.user_added')
  t.equal(added.length, 3)
  t.notOk(
    added.some(({ data }) => data.group && 'members' in data.group.raw),
    'an event about one member has one',
  )
})

onEachDatabase(t, 'the display of a member is what was sent, until another is sent', async (t, service) => {
  const directory = await service.directory()
  const { scim, tenant, product } = directory
  const [a = '', b = ''] = await users(directory, 2)
  const { body: made } = await scim(
    'POST',
    '/Groups',
    group('Team', [{ value: a, display: 'ada@x' }, { value: b }]),
  )
  const display = async (id: string) => {
    const { body } = await service.manage('GET', `/groups/${made.id}?tenant=${tenant}&product=${product}`)
    const { body: scimGroup } = await scim('GET', `/Groups/${made.id}`)
    const found = [body.data.raw, scimGroup].map(
      ({ members }) => members.find(({ value }: { value: string }) => value === id).display,
    )
    t.equal(found[0], found[1], 'both APIs show the same')
    return found[0]
  }
  t.equal(await display(a), 'ada@x')
  t.equal(await display(b), 'User 1', 'without one, the name of the user')
  const rename = patchOp({ op: 'replace', path: 'displayName', value: 'New' })
  for (const id of [a, b]) await scim('PATCH', `/Users/${id}`, rename)
  t.same([await display(a), await display(b)], ['ada@x', 'New'])
  const before = (await told(service, directory)).length
  await scim(
    'PUT',
    `/Groups/${made.id}`,
    group('Team', [
      { value: a, display: 'Ada' },
      { value: b, display: 'Bob' },
    ]),
  )
  t.same([await display(a), await display(b)], ['Ada', 'Bob'])
  await scim('PUT', `/Groups/${made.id}`, group('Team', asMembers([a, b])))
  t.same([await display(a), await display(b)], ['Ada', 'Bob'], 'a list without them changes nothing')
  t.equal((await told(service, directory)).length, before, 'nobody joined or left')
  const wrong = await scim(
    'PUT',
    `/Groups/${made.id}`,
    group('Team', [{ value: a, display: 'x'.repeat(1025) }]),
  )
  t.match(wrong, { status: 400, body: { detail: 'display is longer than 1024 characters.' } })
})

// On SQLite alone: MongoDB-protocol servers may take minutes for so many users; the contract of stores covers pages.
t.test('a group with more than 1000 members says that it shows only the first', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { scim } = directory
  const ids = await users(directory, 1002)
  const { body: made } = await scim('POST', '/Groups', group('All', asMembers(ids.slice(0, 1001))))
  const [all] = await listed(service, directory)
  t.same(
    all.raw.members.map(({ value }: { value: string }) => value),
    ids.slice(0, 1000),
  )
  t.equal(all.members_truncated, true)
  await scim('PUT', `/Groups/${made.id}`, group('Fewer', asMembers(ids.slice(2))))
  const [fewer] = await listed(service, directory)
  t.same([fewer.raw.members.length, fewer.members_truncated], [1000, undefined])
  const last = await waitUntil('the event', async () => {
    const { body } = await service.manage('GET', `/feed?directoryId=${directory.id}&pageLimit=500`)
    let events = body.data
    let { cursor } = body
    while (events.length > 0) {
      const updated = events.find(({ event }: { event: string }) => event === 'group.updated')
      if (updated) return updated
      const next = await service.manage(
        'GET',
        `/feed?directoryId=${directory.id}&pageLimit=500&cursor=${cursor}`,
      )
      events = next.body.data
      cursor = next.body.cursor
    }
    return undefined
  })
  t.same(
    last.data.raw.members.map(({ value }: { value: string }) => value),
    ids.slice(2),
    'the event has the members after the change',
  )
})

t.test('a page of large groups shows at most 20,000 members', async t => {
  const asked: number[] = []
  const store = {
    members: async (_group: string, { limit }: { limit: number }) => {
      asked.push(limit)
      return Array.from({ length: Math.min(limit, 5000) }, (_, n) => ({ userId: `u${n}`, label: '' }))
    },
  } as unknown as Store
  const groups = Array.from({ length: 500 }, (_, n) => `g${n}`)
  const found = await listedMembers(store, groups)
  t.equal(found.length, 500)
  t.equal(
    found.reduce((sum, { members, most }) => sum + Math.min(most, members.length), 0),
    20_000,
  )
  t.ok(
    found.every(({ members, most }) => members.length > most),
    'each of them is marked',
  )
  t.equal(
    asked.reduce((sum, limit) => sum + limit, 0),
    20_000 + 500,
  )
})
