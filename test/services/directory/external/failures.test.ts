import t from 'tap'
import { json, people, person, teams } from './provider.js'
import { startPulling } from './pulling.js'

t.test('after an incomplete read nothing is deleted, and new users are kept', async t => {
  const { countLocally, connect, pull, held, logged } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(6)
  countLocally.groups = teams()
  await pull(directory)
  const before = await held(directory)
  countLocally.users = [person(7), ...people(5)]
  countLocally.groups = [{ ...teams()[0], members: ['p1'] } as never, ...teams().slice(1)]

  const failures: Record<string, () => void> = {
    '500 in the middle of the users': () => {
      countLocally.disturb = ({ path, params }, response) => {
        if (path !== '/api/users' || params.get('pageToken') !== '4') return false
        json(response, 500, { error: { message: 'person1@acme.example' } })
        return true
      }
    },
    'a page that is cut off': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        response.writeHead(200, { 'content-length': 1000 }).write('{"groups": [')
        setTimeout(() => response.destroy(), 5)
        return true
      }
    },
    'a page that never ends': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups/g2/members') return false
        response.writeHead(200).write('{"members": [')
        return true
      }
    },
    'a page that is no JSON': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        response.writeHead(200).end('<html>')
        return true
      }
    },
    'a page of another shape': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(response, 200, { groups: { id: 'g1' } })
        return true
      }
    },
    'members that may not be read': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups/g1/members') return false
        json(response, 403, {})
        return true
      }
    },
    'a redirect to elsewhere': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(
          response,
          302,
          {},
          { location: `${countLocally.url.replace('127.0.0.1', 'localhost')}/api/groups` },
        )
        return true
      }
    },
    'the same page again and again': () => {
      countLocally.disturb = ({ path }, response) => {
        if (path !== '/api/groups') return false
        json(response, 200, { groups: [], nextPageToken: 'x' })
        return true
      }
    },
    'a user without an id': () => {
      countLocally.disturb = ({ path, params }, response) => {
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
    t.match(problem, /Nothing was deleted, because not everything could be read\.$/, name)
    t.notMatch(problem, /@/, 'the problem names no e-mail address')
    t.same(await held(directory), { ...before, users: [...before.users, 'person7'] }, name)
  }
  countLocally.disturb = () => false
  t.match(await pull(directory), {
    outcome: 'complete',
    counts: { users: { deleted: 1 }, memberships: { removed: 2 } },
  })
  t.notMatch(logged.join(), /canary|@acme/)
})

t.test('the pages, users, bytes and time of a pull are bounded', async t => {
  const small = { pages: 5, users: 50, memberships: 20, answerBytes: 20_000, readMs: 700 }
  const { countLocally, connect, pull } = await startPulling(t, { bounds: small })
  const directory = await connect()
  let page = 0
  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { nextPageToken: String(++page) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /more than 5 pages/ })
  t.equal(page, 5)

  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { users: people(60) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /more than 50 users/ })

  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 200, { users: [], padding: 'x'.repeat(30_000) })
    return path === '/api/users'
  }
  t.match(await pull(directory), { problem: /sent more than 20000 bytes/ })

  countLocally.disturb = async ({ path, params }, response) => {
    if (path !== '/api/users') return false
    await new Promise(resolve => setTimeout(resolve, 250))
    json(response, 200, { nextPageToken: `${params.get('pageToken') ?? ''}x` })
    return true
  }
  t.match(await pull(directory), { problem: /took too long/ })
})

t.test('a page without items does not end the list', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(4)
  countLocally.disturb = ({ path, params }, response) => {
    if (path !== '/api/users' || params.has('pageToken')) return false
    json(response, 200, { kind: 'users', nextPageToken: '0' })
    return true
  }
  t.match(await pull(directory), { outcome: 'complete' })
  t.equal((await held(directory)).users.length, 4)
})

t.test('a provider that limits requests is given the time that it asks for', async t => {
  const { countLocally, connect, pull } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(3)
  countLocally.groups = teams()
  const refusals = new Map<string, [number, object, object]>([
    ['/api/users', [429, {}, { 'retry-after': '1' }]],
    ['/api/groups', [403, { error: { errors: [{ reason: 'quotaExceeded' }] } }, {}]],
    ['/api/groups/g1/members', [503, {}, { 'retry-after': new Date(Date.now() - 5000).toUTCString() }]],
  ])
  const times: number[] = []
  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') times.push(Date.now())
    const refusal = refusals.get(path)
    if (refusal) json(response, ...refusal)
    return refusals.delete(path)
  }
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 3 } } })
  t.equal(refusals.size, 0)
  t.ok((times[1] ?? 0) - (times[0] ?? 0) >= 990, 'the pull waits as long as Retry-After says')

  countLocally.disturb = ({ path }, response) => {
    if (path === '/api/users') json(response, 429, {}, { 'retry-after': '3600' })
    return path === '/api/users'
  }
  t.match(
    await pull(directory),
    { outcome: 'failed', problem: /asks us to wait 3600 s/ },
    'a wait of an hour is left to the next pull',
  )
})

t.test('an access token that expires is renewed, stored and used from then on', async t => {
  const { countLocally, connect, pull, store } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(6)
  const tokensOf = async () => (await store.directory(directory.id))?.external?.tokens
  const first = await tokensOf()
  countLocally.disturb = ({ path, params }) => {
    // Revoked between two pages.
    if (path === '/api/users' && params.get('pageToken') === '2' && countLocally.grants.length === 1)
      countLocally.tokens.clear()
    return false
  }
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 6 } } })
  t.equal(countLocally.grants.length, 2)
  t.equal(countLocally.grants[1]?.get('grant_type'), 'refresh_token')
  const second = await tokensOf()
  t.not(second?.access, first?.access)
  t.ok(second?.refresh, 'the refresh token is kept')
  t.match(await pull(directory), { outcome: 'complete' })
  t.equal(countLocally.grants.length, 2, 'the next pull uses the stored access token')

  countLocally.lifeSeconds = 30
  countLocally.tokens.clear()
  await pull(directory)
  await pull(directory)
  t.equal(countLocally.grants.length, 4, 'an access token about to expire is renewed before it is used')

  countLocally.rotates = true
  await pull(directory)
  t.match(await pull(directory), { outcome: 'complete' }, 'a new refresh token replaces the old one')
  t.equal(countLocally.grants.length, 6)
})

t.test('a directory whose pull fails reports why and does not stop the others', async t => {
  const { countLocally, connect, pullAll, state, held } = await startPulling(t)
  const dead = await connect()
  countLocally.refreshTokens.clear()
  countLocally.tokens.clear()
  const alive = await connect()
  const refusing = await connect()
  countLocally.users = people(3)
  const other = [...countLocally.tokens][1] ?? ''
  countLocally.disturb = ({ authorization }, response) => {
    if (authorization !== `Bearer ${other}`) return false
    json(response, 403, { error: { message: 'Not Authorized to access this resource/api' } })
    return true
  }
  const results = await pullAll()
  t.equal(results.length, 3)
  t.match(await state(dead), {
    outcome: 'failed',
    problem: /invalid_grant\): connect the directory again/,
  })
  t.match(await state(refusing), {
    outcome: 'failed',
    problem: /GET \/api\/groups: the provider answered 403/,
  })
  t.match(await state(alive), { outcome: 'complete' })
  t.equal((await held(alive)).users.length, 3)
})

t.test('a callback that throws ends the pull, and the next pull continues', async t => {
  const { countLocally, connect, pull, held } = await startPulling(t)
  const directory = await connect()
  countLocally.users = people(3)
  let calls = 0
  const callback = (): void => {
    if (++calls === 2) throw new Error('no room')
  }
  t.match(await pull(directory, { callback }), { outcome: 'failed', problem: 'The callback threw: no room' })
  t.equal((await held(directory)).users.length, 2, 'the users whose events were sent are stored')
  t.match(await pull(directory), { outcome: 'complete', counts: { users: { created: 1 } } })
})
