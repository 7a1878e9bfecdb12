import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { DirectoryEvent } from '../../../../services/directory/schemas/events.js'
import type { Store } from '../../../../services/directory/store/contract.js'
import { openMongodb } from '../../../../services/directory/store/mongodb/store.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { newResource, save, write } from '../store/store-fixtures.js'
import { people, person, teams } from './provider.js'
import { startPulling } from './pulling.js'

/** How pulls behave on any store. */
async function pulls(t: Test, store?: Store): Promise<void> {
  const { countLocally, connect, pull, held, news, events } = await startPulling(t, store ? { store } : {})
  const directory = await connect()
  countLocally.users = people(5)
  countLocally.groups = teams()

  t.test('the first pull brings all pages of users, groups and members, with events in order', async t => {
    t.match(await pull(directory), { outcome: 'complete', problem: null })
    t.same(await held(directory), {
      users: ['person1', 'person2', 'person3', 'person4', 'person5'],
      groups: { Empty: [], Sales: ['person1', 'person2', 'person3'], Support: ['person3', 'person4'] },
    })
    t.match(events[0], {
      event: 'user.created',
      directory_id: directory.id,
      tenant: directory.tenant,
      sequence: 1,
      data: {
        first_name: 'Person',
        last_name: '1',
        email: 'person1@acme.example',
        active: true,
        raw: { externalId: 'p1', userName: 'person1@acme.example', displayName: 'Person 1' },
      },
    })
    t.same(
      events.map(event => event.sequence),
      events.map((_, index) => index + 1),
    )
    t.equal(news().length, 5 + 3 + 5)
    t.ok(countLocally.asks.every(ask => /^Bearer access-canary-/.test(ask.authorization)))
    t.equal(countLocally.asks.find(ask => ask.path === '/api/users')?.params.get('domain'), 'acme.example')
  })

  t.test('a pull without changes sends no events', async t => {
    t.match(await pull(directory), {
      outcome: 'complete',
      counts: { users: { created: 0, updated: 0, deleted: 0 } },
    })
    t.same(news(), [])
  })

  t.test('changes send the same events as SCIM changes would', async t => {
    countLocally.users = [
      person(1, { primaryEmail: 'renamed@acme.example' }),
      person(2, { suspended: true }),
      person(3),
      person(4),
      person(6),
    ]
    const [sales, support] = teams()
    countLocally.groups = [
      { ...sales, name: 'Sellers', members: ['p1', 'p3', 'p6'] } as never,
      { ...support, members: ['p4', 'p3'] } as never,
    ]
    t.match(await pull(directory), {
      outcome: 'complete',
      counts: {
        users: { created: 1, updated: 2, deleted: 1 },
        groups: { created: 0, updated: 1, deleted: 1 },
        memberships: { added: 1, removed: 1 },
      },
    })
    t.same(news(), [
      'group.user_removed Sales person2',
      'group.deleted Empty',
      'user.deleted person5',
      'user.updated renamed',
      'user.updated person2',
      'user.created person6',
      'group.updated Sellers',
      'group.user_added Sellers person6',
    ])
    t.same(await held(directory), {
      users: ['-person2', 'person3', 'person4', 'person6', 'renamed'],
      groups: { Sellers: ['person3', 'person6', 'renamed'], Support: ['person3', 'person4'] },
    })
  })

  t.test('a name can move to another user or group within one pull', async t => {
    countLocally.users = [
      person(1, { primaryEmail: 'person3@acme.example' }),
      person(2),
      person(3, { primaryEmail: 'third@acme.example' }),
      // person4 is gone, and their address belongs to a new person.
      person(7, { primaryEmail: 'person4@acme.example' }),
      person(6),
    ]
    countLocally.groups = [
      { ...teams()[1], id: 'g4', members: ['p7'] } as never,
      { ...teams()[0], name: 'Sellers', members: [] } as never,
    ]
    t.match(await pull(directory), { outcome: 'complete' })
    t.same(await held(directory), {
      users: ['person2', 'person3', 'person4', 'person6', 'third'],
      groups: { Sellers: [], Support: ['person4'] },
    })
    news()
  })

  t.test('groups with the same name are told apart by their address', async t => {
    countLocally.groups = [
      ...countLocally.groups,
      { id: 'g5', name: 'Support', email: 'second@acme.example', members: ['p6'] },
    ]
    t.match(await pull(directory), { outcome: 'complete' })
    t.same(news(), [
      'group.created Support (second@acme.example)',
      'group.user_added Support (second@acme.example) person6',
    ])
    t.match(await pull(directory), { outcome: 'complete' })
    t.same(news(), [])
  })
}

t.test('pulls on SQLite', async t => pulls(t))
t.test('pulls on MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const store = await openMongodb(url)
  t.teardown(() => store.close())
  await pulls(t, store)
})

t.test('a pull that would delete too many users deletes none until it is allowed to', async t => {
  const { countLocally, connect, pull, held, news } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(10)
  countLocally.groups = [{ ...teams()[0], members: people(10).map(user => user.id) } as never]
  await pull(directory)
  const full = await held(directory)
  news()

  countLocally.users = []
  countLocally.groups = []
  const refused = await pull(directory)
  t.equal(refused.outcome, 'refused')
  t.match(refused.problem, /^Nothing was deleted: 10 of 10 users would be deleted, more than 30 %/)
  t.same(await held(directory), full)

  countLocally.users = [...people(6), person(11)]
  countLocally.groups = [{ ...teams()[0], members: people(6).map(user => user.id) } as never]
  t.match(await pull(directory), { outcome: 'refused', problem: /4 of 10 users would be deleted/ })
  t.same(news(), ['user.created person11'], 'new users are still created')

  countLocally.users = [...people(7), person(11)]
  t.match(
    await pull(directory),
    { outcome: 'complete', counts: { users: { deleted: 3 } } },
    'the deletion of 3 of 11 users is allowed',
  )
  countLocally.users = [person(11)]
  t.match(await pull(directory), { outcome: 'refused' })
  t.match(await pull(directory, { allowDeletions: true }), {
    outcome: 'complete',
    counts: { users: { deleted: 7 } },
  })
  t.same((await held(directory)).users, ['person11'])
})

t.test('a pull that would remove too many memberships is refused too', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(30)
  countLocally.groups = [{ ...teams()[0], members: people(30).map(user => user.id) } as never]
  await pull(directory)
  countLocally.groups = [{ ...teams()[0], members: [] } as never]
  t.match(await pull(directory), { outcome: 'refused', problem: /30 of 30 memberships would be deleted/ })
  t.equal((await held(directory)).groups.Sales?.length, 30)
})

t.test('a user created by SCIM is adopted by address, and other users are left alone', async t => {
  const { countLocally, connect, pull, store, held } = await startPulling(t)
  const directory = await connect()
  const head = await store.head(directory.id)
  const made = ['person1@acme.example', 'by-hand@acme.example'].map((userName, n) => ({
    kind: 'create' as const,
    terms: [],
    resource: {
      ...{
        type: 'user' as const,
        id: `u${n}`,
        directoryId: directory.id,
        tenant: directory.tenant,
        product: 'app',
      },
      ...{ created: '2026-01-01T00:00:00.000Z', modified: '2026-01-01T00:00:00.000Z', label: userName },
      raw: { userName },
    },
  }))
  if (head) await store.commit(directory.id, head, { writes: made, events: [] })
  countLocally.users = people(2)
  t.match(await pull(directory), {
    outcome: 'complete',
    counts: { users: { created: 1, updated: 1, deleted: 0 } },
  })
  t.same((await held(directory)).users, ['by-hand', 'person1', 'person2'])

  countLocally.groups = [{ ...teams()[0], members: ['p1'] } as never]
  await pull(directory)
  const [team] = await store.resources({ directoryId: directory.id }, 'group', { offset: 0, limit: 1 })
  const next = await store.head(directory.id)
  const joins = [{ kind: 'join' as const, groupId: team?.id ?? '', userIds: ['u1'] }]
  if (next) await store.commit(directory.id, next, { writes: joins, events: [] })
  t.match(await pull(directory), { outcome: 'complete', counts: { memberships: { removed: 0 } } })
  t.same((await held(directory)).groups, { Sales: ['by-hand', 'person1'] })
})

t.test('of two provider groups with one name only the first adopts the local group', async t => {
  const { countLocally, connect, pull, store, held } = await startPulling(t)
  const directory = await connect()
  const sales = newResource(directory, 'group', 'Sales')
  await write(store, directory, [save(sales)])
  countLocally.users = people(2)
  countLocally.groups = [
    { id: 'g1', name: 'Sales', email: 'sales@acme.example', members: ['p1'] },
    { id: 'g2', name: 'Sales', email: 'second@acme.example', members: ['p2'] },
  ]
  const counts = { groups: { created: 1, updated: 1, deleted: 0 } }
  t.match(await pull(directory), { outcome: 'complete', counts })
  t.same((await held(directory)).groups, { Sales: ['person1'], 'Sales (second@acme.example)': ['person2'] })
  const kept = await store.resource({ directoryId: directory.id }, 'group', sales.id)
  t.match(kept?.raw, { externalId: 'g1' })
})

t.test('a group without a name is called by its address, with its id when that name is taken', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  const address = 'sales@acme.example'
  countLocally.groups = [
    { id: 'g1', name: address, email: 'other@acme.example', members: [] },
    { id: 'g2', name: '', email: address, members: [] },
  ]
  t.match(await pull(directory), { outcome: 'complete' })
  t.same((await held(directory)).groups, { [address]: [], [`${address} (g2)`]: [] })
})

t.test('a pull that loses its lease at once sends the provider no request', async t => {
  const key = randomBytes(32)
  const one = await startPulling(t, { key })
  const directory = await one.connect()
  const claimPull: Store['claimPull'] = async (id, wish) => {
    const fence = await one.store.claimPull(id, wish)
    const now = wish.until + 1
    t.ok(await one.store.claimPull(id, { now, until: now + 60_000 }), 'the lease is over')
    return fence
  }
  const slow = await startPulling(t, {
    key,
    countLocally: one.countLocally,
    store: { ...one.store, claimPull },
  })
  t.same(await slow.pullAll(), [])
  t.same(one.countLocally.asks, [])
  t.equal(await one.state(directory), undefined)
})

t.test('after any changes at the provider, a pull makes the directory equal to the provider', async t => {
  const { countLocally, connect, pull, held, events, news } = await startPulling(t)
  const letters = ['a', 'b', 'c', 'd', 'e']
  const names = fc.shuffledSubarray(letters, { minLength: 1 })
  const state = fc.record({
    // The nth user has the id n, so names move between ids.
    users: names,
    groups: fc.shuffledSubarray(letters, { maxLength: 3 }),
    members: fc.array(fc.tuple(fc.nat(2), fc.nat(4)), { maxLength: 8 }),
    suspended: fc.nat(4),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(state, { minLength: 2, maxLength: 4 }), async states => {
      const directory = await connect()
      events.length = 0
      news()
      for (const { users, groups, members, suspended } of states) {
        const of = (group: number) => members.filter(([g, user]) => g === group && user < users.length)
        const membersOf = groups.map((_, g) => [...new Set(of(g).map(([, user]) => user))])
        countLocally.users = users.map((name, n) =>
          person(n, { primaryEmail: `${name}@acme.example`, suspended: n === suspended }),
        )
        countLocally.groups = groups.map((name, n) => ({
          ...{ id: `g${n}`, name, email: `${n}@acme.example` },
          members: (membersOf[n] ?? []).map(user => `p${user}`),
        }))
        const { outcome, problem } = await pull(directory, { allowDeletions: true })
        t.same([outcome, problem], ['complete', null])
        const seen = await held(directory)
        t.same(seen.users, users.map((name, n) => (n === suspended ? `-${name}` : name)).sort())
        t.same(
          seen.groups,
          Object.fromEntries(groups.map((name, n) => [name, (membersOf[n] ?? []).map(u => users[u]).sort()])),
        )
        t.same(told(events), { users: seen.users, groups: seen.groups }, 'the events give the same directory')
      }
    }),
    { numRuns: 10 },
  )
})

interface Told {
  id: string
  raw: { userName?: string }
  active: boolean
  group?: { id: string }
  name: string
}

/** The directory as reconstructed from the events alone. */
function told(events: readonly DirectoryEvent[]) {
  const users = new Map<unknown, string>()
  const groups = new Map<unknown, { name: string; members: Set<unknown> }>()
  for (const { event, data } of events) {
    const { id, raw, active, group, name } = data as unknown as Told
    const shown = `${active === false ? '-' : ''}${raw.userName?.replace(/@acme.example$/, '')}`
    if (event === 'user.created' || event === 'user.updated') users.set(id, shown)
    if (event === 'user.deleted') users.delete(id)
    if (event === 'group.created') groups.set(id, { name, members: new Set() })
    const target = groups.get(group?.id ?? id)
    if (event === 'group.updated' && target) target.name = name
    if (event === 'group.deleted') groups.delete(id)
    if (event === 'group.user_added') target?.members.add(id)
    if (event === 'group.user_removed') target?.members.delete(id)
  }
  const namesOf = (ids: Set<unknown>) => [...ids].map(id => users.get(id)?.replace(/^-/, '')).sort()
  return {
    users: [...users.values()].sort(),
    groups: Object.fromEntries([...groups.values()].map(({ name, members }) => [name, namesOf(members)])),
  }
}

t.test('one process at a time pulls a directory, and another takes over after its lease ends', async t => {
  const key = randomBytes(32)
  const one = await startPulling(t, { key, bounds: { answerMs: 20_000 } })
  const other = await startPulling(t, { store: one.store, countLocally: one.countLocally, key })
  const directory = await one.connect()
  one.countLocally.users = people(2)
  let release = (): void => undefined
  let held = 0
  one.countLocally.disturb = async ({ path }) => {
    if (path === '/api/groups' && ++held === 1) await new Promise<void>(resolve => (release = resolve))
    return false
  }
  await one.begin(directory)
  await waitUntil('the pull is under way', () => held > 0)
  t.equal((await one.state(directory))?.outcome, 'running')
  t.same(await other.pullAll(), [], 'the other process does not pull the directory')
  release()
  await waitUntil('the pull is over', async () => (await one.state(directory))?.outcome === 'complete')

  const fence = await one.store.claimPull(directory.id, { now: Date.now(), until: Date.now() + 100 })
  t.ok(fence)
  t.same(await other.pullAll(), [])
  await waitUntil('the lease is over', async () => (await other.pullAll()).length === 1)
  const state = await one.state(directory)
  const report = { until: 0, state: { ...state, outcome: 'failed' } as never }
  t.equal(
    await one.store.reportPull(directory.id, fence ?? 0, report),
    false,
    'a report under the expired lease is refused',
  )
  t.equal((await one.state(directory))?.outcome, 'complete')
})

t.test('with an interval a directory is pulled by one of two processes per interval', async t => {
  const key = randomBytes(32)
  const env = { DSYNC_EXTERNAL_CRON_INTERVAL: '1' }
  const one = await startPulling(t, { key, env })
  const other = await startPulling(t, { store: one.store, countLocally: one.countLocally, key, env })
  await one.connect()
  const lists = () => one.countLocally.asks.filter(ask => ask.path === '/api/users').length
  const begun = Date.now()
  await waitUntil('a second pull', () => lists() >= 2)
  t.ok(Date.now() - begun > 900, 'the second pull does not come before its interval')
  await other.close()
})
