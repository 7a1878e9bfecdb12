import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { DirectoryEvent } from '../../../services/directory/events/callback.js'
import type { Store } from '../../../services/directory/store/contract.js'
import { openMongodb } from '../../../services/directory/store/mongodb.js'
import { mongoUrl } from '../../helpers/mongo.js'
import { waitUntil } from '../../helpers/wait.js'
import { json, people, person } from './provider.js'
import { startPulling } from './pulling.js'

const teams = () => [
  { id: 'g1', name: 'Sales', email: 'sales@acme.example', members: ['p1', 'p2', 'p3', 'p9', 'g2'] },
  { id: 'g2', name: 'Support', email: 'support@acme.example', members: ['p3', 'p4'] },
  { id: 'g3', name: 'Empty', email: 'empty@acme.example', members: [] },
]

/** What a pull has to do on any store. */
async function pulls(t: Test, store?: Store): Promise<void> {
  const { standIn, connect, pull, held, news, events } = await startPulling(t, store ? { store } : {})
  const directory = await connect()
  standIn.users = people(5)
  standIn.groups = teams()

  t.test('the first pull brings all pages of users, groups and members, as events in order', async t => {
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
    t.ok(standIn.asks.every(ask => /^Bearer access-canary-/.test(ask.authorization)))
    t.equal(standIn.asks.find(ask => ask.path === '/api/users')?.params.get('domain'), 'acme.example')
  })

  t.test('a pull without a change tells nothing', async t => {
    t.match(await pull(directory), {
      outcome: 'complete',
      counts: { users: { created: 0, updated: 0, deleted: 0 } },
    })
    t.same(news(), [])
  })

  t.test('changes come as the events that SCIM would have made', async t => {
    standIn.users = [
      person(1, { primaryEmail: 'renamed@acme.example' }),
      person(2, { suspended: true }),
      person(3),
      person(4),
      person(6),
    ]
    const [sales, support] = teams()
    standIn.groups = [
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

  t.test('a name goes over to another user or group in one pull', async t => {
    standIn.users = [
      person(1, { primaryEmail: 'person3@acme.example' }),
      person(2),
      person(3, { primaryEmail: 'third@acme.example' }),
      // person4 is gone, their address is that of a new person.
      person(7, { primaryEmail: 'person4@acme.example' }),
      person(6),
    ]
    standIn.groups = [
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

  t.test('groups of one name are told apart by their address', async t => {
    standIn.groups = [
      ...standIn.groups,
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

t.test('Pulls on SQLite', async t => pulls(t))
t.test('Pulls on MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const store = await openMongodb(url)
  t.teardown(() => store.close())
  await pulls(t, store)
})

t.test('an empty or much shorter list deletes nothing until it is allowed once', async t => {
  const { standIn, connect, pull, held, news } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(10)
  standIn.groups = [{ ...teams()[0], members: people(10).map(user => user.id) } as never]
  await pull(directory)
  const full = await held(directory)
  news()

  standIn.users = []
  standIn.groups = []
  const refused = await pull(directory)
  t.equal(refused.outcome, 'refused')
  t.match(refused.problem, /^Nothing was deleted: 10 of 10 users would go, more than 30 %/)
  t.same(await held(directory), full)

  standIn.users = [...people(6), person(11)]
  standIn.groups = [{ ...teams()[0], members: people(6).map(user => user.id) } as never]
  t.match(await pull(directory), { outcome: 'refused', problem: /4 of 10 users would go/ })
  t.same(news(), ['user.created person11'], 'what is new comes all the same')

  standIn.users = [...people(7), person(11)]
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { deleted: 3 } } }, '3 of 11 may go')
  standIn.users = [person(11)]
  t.match(await pull(directory), { outcome: 'refused' })
  t.match(await pull(directory, { allowDeletions: true }), {
    outcome: 'complete',
    counts: { users: { deleted: 7 } },
  })
  t.same((await held(directory)).users, ['person11'])
})

t.test('a membership list that shrinks by half is refused too', async t => {
  const { standIn, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(30)
  standIn.groups = [{ ...teams()[0], members: people(30).map(user => user.id) } as never]
  await pull(directory)
  standIn.groups = [{ ...teams()[0], members: [] } as never]
  t.match(await pull(directory), { outcome: 'refused', problem: /30 of 30 memberships would go/ })
  t.equal((await held(directory)).groups.Sales?.length, 30)
})

t.test('after an incomplete read nothing is deleted, and what was read is kept', async t => {
  const { standIn, connect, pull, held, logged } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(6)
  standIn.groups = teams()
  await pull(directory)
  const before = await held(directory)
  standIn.users = [person(7), ...people(5)]
  standIn.groups = [{ ...teams()[0], members: ['p1'] } as never, ...teams().slice(1)]

  const failures: Record<string, () => void> = {
    '500 in the middle of the users': () => {
      standIn.disturb = ({ path, params }, response) => {
        if (path !== '/api/users' || params.get('pageToken') !== '4') return false
        json(response, 500, { error: { message: 'person1@acme.example' } })
        return true
      }
    },
    'a page that is cut off': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        response.writeHead(200, { 'content-length': 1000 }).write('{"groups": [')
        setTimeout(() => response.destroy(), 5)
        return true
      }
    },
    'a page that never ends': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups/g2/members') return false
        response.writeHead(200).write('{"members": [')
        return true
      }
    },
    'a page that is no JSON': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        response.writeHead(200).end('<html>')
        return true
      }
    },
    'a page of another shape': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(response, 200, { groups: { id: 'g1' } })
        return true
      }
    },
    'members that may not be read': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups/g1/members') return false
        json(response, 403, {})
        return true
      }
    },
    'a redirect to elsewhere': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(response, 302, {}, { location: `${standIn.url.replace('127.0.0.1', 'localhost')}/api/groups` })
        return true
      }
    },
    'the same page again and again': () => {
      standIn.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(response, 200, { groups: [], nextPageToken: 'x' })
        return true
      }
    },
    'a user without an id': () => {
      standIn.disturb = ({ path, params }, response) => {
        if (path !== '/api/users' || params.has('pageToken')) return false
        json(response, 200, { users: [{ primaryEmail: 'person1@acme.example' }], nextPageToken: '0' })
        return true
      }
    },
  }
  for (const [name, begin] of Object.entries(failures)) {
    begin()
    const { outcome, problem } = await pull(directory)
    t.equal(outcome, 'incomplete', name)
    t.match(problem, /Nothing was deleted, as not all could be read\.$/, name)
    t.notMatch(problem, /@/, 'no address of a person')
    t.same(await held(directory), { ...before, users: [...before.users, 'person7'] }, name)
  }
  standIn.disturb = () => false
  t.match(await pull(directory), {
    outcome: 'complete',
    counts: { users: { deleted: 1 }, memberships: { removed: 2 } },
  })
  t.notMatch(logged.join(), /canary|@acme/)
})

t.test('what is endless or too large is bounded', async t => {
  const small = { pages: 5, users: 50, memberships: 20, answerBytes: 20_000, readMs: 700 }
  const { standIn, connect, pull } = await startPulling(t, { bounds: small })
  const directory = await connect()
  let page = 0
  standIn.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { nextPageToken: String(++page) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /more than 5 pages/ })
  t.equal(page, 5)

  standIn.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { users: people(60) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /more than 50 users/ })

  standIn.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { users: [], padding: 'x'.repeat(30_000) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /gave more than 20000 bytes/ })

  standIn.disturb = async ({ path, params }, response) => {
    if (path !== '/api/users') return false
    await new Promise(resolve => setTimeout(resolve, 250))
    json(response, 200, { nextPageToken: `${params.get('pageToken') ?? ''}x` })
    return true
  }
  t.match(await pull(directory), { problem: /took too long/ })
})

t.test('pages without items in between are no end', async t => {
  const { standIn, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(4)
  standIn.disturb = ({ path, params }, response) => {
    if (path !== '/api/users' || params.has('pageToken')) return false
    json(response, 200, { kind: 'users', nextPageToken: '0' })
    return true
  }
  t.match(await pull(directory), { outcome: 'complete' })
  t.equal((await held(directory)).users.length, 4)
})

t.test('a provider that is asked too much is given the time it asks for', async t => {
  const { standIn, connect, pull } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(3)
  standIn.groups = teams()
  const refusals = new Map<string, [number, object, object]>([
    ['/api/users', [429, {}, { 'retry-after': '1' }]],
    ['/api/groups', [403, { error: { errors: [{ reason: 'quotaExceeded' }] } }, {}]],
    ['/api/groups/g1/members', [503, {}, { 'retry-after': new Date(Date.now() - 5000).toUTCString() }]],
  ])
  const times: number[] = []
  standIn.disturb = ({ path }, response) => {
    if (path === '/api/users') times.push(Date.now())
    const refusal = refusals.get(path)
    if (refusal) json(response, ...refusal)
    return refusals.delete(path)
  }
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 3 } } })
  t.equal(refusals.size, 0)
  t.ok((times[1] ?? 0) - (times[0] ?? 0) >= 990, 'Retry-After was waited for')

  standIn.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 429, {}, { 'retry-after': '3600' })
    return path === '/api/users'
  }
  t.match(
    await pull(directory),
    { outcome: 'failed', problem: /asks to wait 3600 s/ },
    'an hour is left to the next pull',
  )
})

t.test('an access token that ends is renewed, kept, and used from then on', async t => {
  const { standIn, connect, pull, store } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(6)
  const tokensOf = async () => (await store.directory(directory.id))?.external?.tokens
  const first = await tokensOf()
  standIn.disturb = ({ path, params }) => {
    // Revoked between two pages.
    if (path === '/api/users' && params.get('pageToken') === '2' && standIn.grants.length === 1)
      standIn.tokens.clear()
    return false
  }
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 6 } } })
  t.equal(standIn.grants.length, 2)
  t.equal(standIn.grants[1]?.get('grant_type'), 'refresh_token')
  const second = await tokensOf()
  t.not(second?.access, first?.access)
  t.ok(second?.refresh, 'the refresh token stays')
  t.match(await pull(directory), { outcome: 'complete' })
  t.equal(standIn.grants.length, 2, 'the next pull uses the stored one')

  standIn.lifeSeconds = 30
  standIn.tokens.clear()
  await pull(directory)
  await pull(directory)
  t.equal(standIn.grants.length, 4, 'one that is about to end is renewed before it is used')

  standIn.rotates = true
  await pull(directory)
  t.match(
    await pull(directory),
    { outcome: 'complete' },
    'a new refresh token takes the place of the old one',
  )
  t.equal(standIn.grants.length, 6)
})

t.test('a directory that fails says why and stops no other', async t => {
  const { standIn, connect, pullAll, state, held } = await startPulling(t)
  const dead = await connect()
  standIn.refreshTokens.clear()
  standIn.tokens.clear()
  const alive = await connect()
  const refusing = await connect()
  standIn.users = people(3)
  const other = [...standIn.tokens][1] ?? ''
  standIn.disturb = ({ authorization }, response) => {
    if (authorization !== `Bearer ${other}`) return false
    json(response, 403, { error: { message: 'Not Authorized to access this resource/api' } })
    return true
  }
  const results = await pullAll()
  t.equal(results.length, 3)
  t.match(await state(dead), {
    outcome: 'failed',
    problem: /invalid_grant\): connect the directory anew/,
  })
  t.match(await state(refusing), {
    outcome: 'failed',
    problem: /GET \/api\/users: the provider answered 403/,
  })
  t.match(await state(alive), { outcome: 'complete' })
  t.equal((await held(alive)).users.length, 3)
})

t.test('a callback that throws ends its directory’s pull; the next one goes on', async t => {
  const { standIn, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  standIn.users = people(3)
  let calls = 0
  const callback = (): void => {
    if (++calls === 2) throw new Error('no room')
  }
  t.match(await pull(directory, { callback }), { outcome: 'failed', problem: 'The callback threw: no room' })
  t.equal((await held(directory)).users.length, 2, 'what was told is stored')
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 1 } } })
})

t.test('users that SCIM brought first are taken over; others are left alone', async t => {
  const { standIn, connect, pull, store, held } = await startPulling(t)
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
  if (head) await store.commit(directory.id, head, { writes: made, events: [], queued: false })
  standIn.users = people(2)
  t.match(await pull(directory), {
    outcome: 'complete',
    counts: { users: { created: 1, updated: 1, deleted: 0 } },
  })
  t.same((await held(directory)).users, ['by-hand', 'person1', 'person2'])

  standIn.groups = [{ ...teams()[0], members: ['p1'] } as never]
  await pull(directory)
  const [team] = await store.resources({ directoryId: directory.id }, 'group', { offset: 0, limit: 1 })
  const next = await store.head(directory.id)
  const joins = [{ kind: 'join' as const, groupId: team?.id ?? '', userIds: ['u1'] }]
  if (next) await store.commit(directory.id, next, { writes: joins, events: [], queued: false })
  t.match(await pull(directory), { outcome: 'complete', counts: { memberships: { removed: 0 } } })
  t.same((await held(directory)).groups, { Sales: ['by-hand', 'person1'] })
})

t.test('whatever happens at the provider, a pull leaves the directory as the provider is', async t => {
  const { standIn, connect, pull, held, events, news } = await startPulling(t)
  const letters = ['a', 'b', 'c', 'd', 'e']
  const names = fc.shuffledSubarray(letters, { minLength: 1 })
  const state = fc.record({
    // The nth has the id n, so names wander between ids.
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
        standIn.users = users.map((name, n) =>
          person(n, { primaryEmail: `${name}@acme.example`, suspended: n === suspended }),
        )
        standIn.groups = groups.map((name, n) => ({
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
        t.same(told(events), { users: seen.users, groups: seen.groups }, 'as the events tell it')
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

/** The directory as somebody has it who only hears the events. */
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

t.test('one process at a time pulls a directory; what a dead one left is taken over', async t => {
  const key = randomBytes(32)
  const one = await startPulling(t, { key, bounds: { answerMs: 20_000 } })
  const other = await startPulling(t, { store: one.store, standIn: one.standIn, key })
  const directory = await one.connect()
  one.standIn.users = people(2)
  let release = (): void => undefined
  let held = 0
  one.standIn.disturb = async ({ path }) => {
    if (path === '/api/groups' && ++held === 1) await new Promise<void>(resolve => (release = resolve))
    return false
  }
  await one.begin(directory)
  await waitUntil('the pull is under way', () => held > 0)
  t.equal((await one.state(directory))?.outcome, 'running')
  t.same(await other.pullAll(), [], 'the other leaves it alone')
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
    'the dead one cannot come back',
  )
  t.equal((await one.state(directory))?.outcome, 'complete')
})

t.test('with an interval a directory is pulled by itself, by one process once', async t => {
  const key = randomBytes(32)
  const env = { DSYNC_EXTERNAL_CRON_INTERVAL: '1' }
  const one = await startPulling(t, { key, env })
  const other = await startPulling(t, { store: one.store, standIn: one.standIn, key, env })
  await one.connect()
  const lists = () => one.standIn.asks.filter(ask => ask.path === '/api/users').length
  const begun = Date.now()
  await waitUntil('a second pull', () => lists() >= 2)
  t.ok(Date.now() - begun > 900, 'not more often than asked for')
  await other.close()
})
