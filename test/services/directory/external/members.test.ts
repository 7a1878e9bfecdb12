/** Pulls with the scopes for groups and members alone: users may not be read. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Store } from '../../../../services/directory/store/contract.js'
import { openMongodb } from '../../../../services/directory/store/mongodb/store.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { type Ask, json, people, person, teams } from './provider.js'
import { startPulling } from './pulling.js'

/** Answers 403 for users, as to a consent without their scope. */
function forbidUsers({ path }: Ask, response: ServerResponse): boolean {
  if (path === '/api/users')
    json(response, 403, { error: { errors: [{ reason: 'insufficientPermissions' }] } })
  return path === '/api/users'
}

async function pulls(t: Test, store?: Store): Promise<void> {
  const { countLocally, connect, pull, held, news, events } = await startPulling(t, store ? { store } : {})
  const directory = await connect()
  countLocally.disturb = forbidUsers
  countLocally.users = [...people(3), person(4, { suspended: true }), person(5)]
  countLocally.groups = teams()

  t.test('users are built from the members of groups, once each', async t => {
    t.match(await pull(directory), { outcome: 'complete', problem: null })
    t.same(await held(directory), {
      users: ['-person4', 'person1', 'person2', 'person3'],
      groups: { Empty: [], Sales: ['person1', 'person2', 'person3'], Support: ['person3', 'person4'] },
    })
    t.match(events.find(({ event }) => event === 'user.created')?.data, {
      first_name: '',
      last_name: '',
      email: 'person1@acme.example',
      active: true,
      raw: { externalId: 'p1', userName: 'person1@acme.example' },
    })
    news()
    t.match(await pull(directory), { outcome: 'complete' })
    t.same(news(), [], 'the next pull finds nothing new')
  })

  t.test('joining and leaving groups creates and deletes users', async t => {
    const [sales, ...others] = teams()
    countLocally.groups = [{ ...sales, members: ['p2', 'p3', 'p5'] } as never, ...others]
    t.match(await pull(directory), { outcome: 'complete' })
    t.same(news(), [
      'group.user_removed Sales person1',
      'user.deleted person1',
      'user.created person5',
      'group.user_added Sales person5',
    ])
  })

  t.test('nothing is deleted while the members of any group cannot be read', async t => {
    countLocally.groups = [{ ...teams()[0], members: ['p2'] } as never, ...teams().slice(1)]
    countLocally.disturb = (ask, response) => {
      if (ask.path !== '/api/groups/g2/members') return forbidUsers(ask, response)
      json(response, 403, {})
      return true
    }
    t.match(await pull(directory), {
      outcome: 'incomplete',
      problem: /groups\/g2\/members.* Nothing was deleted/,
    })
    t.same(news(), [])
    countLocally.disturb = forbidUsers
  })

  t.test('nothing is deleted when more than 30 % of the users would go', async t => {
    countLocally.groups = [teams()[2] as never]
    t.match(await pull(directory), { outcome: 'refused', problem: /4 of 4 users .*would be deleted/ })
    t.same(news(), [])
    countLocally.groups = teams()
  })
}

t.test('SQLite', async t => pulls(t))
t.test('MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const store = await openMongodb(url)
  t.teardown(() => store.close())
  await pulls(t, store)
})

t.test('a directory whose users could be read falls back to members only when it is told to', async t => {
  const { countLocally, connect, pull, held, news } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(5)
  countLocally.groups = teams()
  await pull(directory)
  const before = await held(directory)
  news()
  countLocally.disturb = forbidUsers
  for (const time of ['first', 'second']) {
    t.match(
      await pull(directory),
      { outcome: 'failed', problem: /users could be read before.*allowDeletions=true.*Nothing was deleted/ },
      time,
    )
  }
  t.same([await held(directory), news()], [before, []])
  t.match(await pull(directory, { allowDeletions: true }), { outcome: 'complete' })
  t.same((await held(directory)).users, ['person1', 'person2', 'person3', 'person4'])
  t.match(await pull(directory), { outcome: 'complete' }, 'from then on members do')
  countLocally.disturb = () => false
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 1, updated: 4 } } })
})

t.test('a 403 that means too many requests, or comes on a later page, is an incomplete read', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(5)
  countLocally.groups = teams()
  const body = { error: { errors: [{ reason: 'rateLimitExceeded' }] } }
  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 403, body)
    return path === '/api/users'
  }
  t.match(await pull(directory), { outcome: 'failed', problem: /answered 403, 3 times/ })
  t.same(await held(directory), { users: [], groups: {} })
  countLocally.disturb = (ask, response) => ask.params.has('pageToken') && forbidUsers(ask, response)
  t.match(await pull(directory), { outcome: 'incomplete', problem: /users: the provider answered 403/ })
  t.same(await held(directory), { users: ['person1', 'person2'], groups: {} })
})

t.test('a 403 after an empty first page does not make members do', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(5)
  countLocally.groups = teams()
  countLocally.disturb = (ask, response) => {
    if (ask.path !== '/api/users' || ask.params.has('pageToken')) return forbidUsers(ask, response)
    json(response, 200, { nextPageToken: 'second' })
    return true
  }
  t.match(await pull(directory), { outcome: 'failed', problem: /users: the provider answered 403/ })
  t.same(await held(directory), { users: [], groups: {} })
})

t.test('a member whose address one group lacks is known by another', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(4)
  countLocally.groups = teams().slice(0, 2)
  countLocally.disturb = (ask, response) => {
    if (ask.path !== '/api/groups/g1/members') return forbidUsers(ask, response)
    json(response, 200, { members: [{ id: 'p3', type: 'USER' }] })
    return true
  }
  t.match(await pull(directory), { outcome: 'complete', problem: null })
  t.same(await held(directory), {
    users: ['person3', 'person4'],
    groups: { Sales: ['person3'], Support: ['person3', 'person4'] },
  })
})

t.test(
  'without a domain, members from elsewhere are users too; one without an address is left out',
  async t => {
    const { countLocally, connect, pull, held, store } = await startPulling(t)
    const directory = await connect()
    const everywhere = { ...directory, external: { ...directory.external, domain: '' } }
    await store.replaceDirectory(directory, everywhere)
    countLocally.users = people(4)
    countLocally.groups = [teams()[0] as never]
    countLocally.disturb = forbidUsers
    t.match(await pull(directory), { outcome: 'complete' })
    t.same((await held(directory)).users, ['p9@elsewhere.example', 'person1', 'person2', 'person3'])
    countLocally.users = [person(1, { primaryEmail: '' }), ...people(4).slice(1)]
    t.match(await pull(directory), {
      outcome: 'incomplete',
      problem: /1 users of the provider are not valid/,
    })
  },
)
