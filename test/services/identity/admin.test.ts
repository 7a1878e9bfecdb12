/** Identities for administrators and programs. */
import t from 'tap'
import { matchList } from '../../helpers/lists.js'
import { PERSON, type Reply, SECRET, started } from './started.js'

t.test('identities of another project cannot be read, changed, deleted or listed', async t => {
  const { form, call, json } = await started(t, {}, SECRET)
  const { id } = (await form(PERSON, { 'x-sluice-project': 'acme:eu' })).json()
  const path = `/admin/identities/${id}`
  const body = { traits: { email: 'e@x.example', name: { first: 'E' } } }
  t.equal((await call('GET', path, { 'x-sluice-project': 'acme:eu' })).status, 200)
  for (const project of ['acme', 'default', 'acme:us']) {
    const as = { 'x-sluice-project': project }
    t.equal((await call('GET', path, as)).status, 404)
    t.equal((await json('PUT', path, body, as)).status, 404)
    t.equal((await json('PATCH', path, body, as)).status, 404)
    t.equal((await call('DELETE', path, as)).status, 404)
    t.same((await call('GET', '/admin/identities', as)).json().identities, [])
  }
})

t.test('PUT replaces an identity, PATCH merges and removes what is null, DELETE deletes it', async t => {
  const { call, json } = await started(t)
  const traits = { email: 'a@x.example', name: { first: 'A', last: 'B' }, age: 3 }
  const created = await json('POST', '/admin/identities', { schema_id: 'person', traits })
  t.equal(created.status, 201)
  const path = created.header('location')
  const merged = await json('PATCH', path, { traits: { age: null, name: { last: 'C' }, newsletter: false } })
  t.same(merged.json().traits, { email: 'a@x.example', name: { first: 'A', last: 'C' }, newsletter: false })
  t.same((await json('PATCH', path, { traits: { name: null } })).json().errors, [
    { path: 'traits.name.first', code: 'required', message: 'This is required.' },
  ])
  const replaced = await json('PUT', path, { traits: { email: 'n@x.example', name: { first: 'N' } } })
  t.same(replaced.json().traits, { email: 'n@x.example', name: { first: 'N' } })
  t.same((await call('GET', path)).json(), replaced.json())
  t.equal((await json('PUT', path, { traits: { email: 'x' } })).status, 400)
  t.equal((await call('DELETE', path)).status, 204)
  t.equal((await call('DELETE', path)).status, 404)
  t.equal((await call('GET', path)).status, 404)
})

t.test('a PATCH of the list creates many identities independently and in order', async t => {
  const { json, call } = await started(t)
  const person = (email: string) => ({ email, name: { first: 'P' } })
  const reply = await json('PATCH', '/admin/identities', {
    identities: [
      { create: { schema_id: 'person', traits: person('a@x.example') } },
      { create: { traits: { email: 'no address' } } },
      { create: { traits: person('A@x.example') } },
      { create: { schema_id: 'animal', traits: person('b@x.example') } },
      { create: {} },
      { delete: 'x' },
      null,
      { create: { traits: person('c@x.example') } },
    ],
  })
  t.equal(reply.status, 200)
  const refused = (status: number, ...codes: string[]) => ({
    action: 'error',
    error: { status, errors: codes.map(code => ({ code, path: String, message: /\.$/ })) },
  })
  matchList(t, reply.json().identities, [
    { action: 'create', identity: /^[0-9a-f-]{36}$/ },
    refused(400, 'required', 'format'),
    refused(409, 'taken'),
    refused(400, 'schema_id'),
    refused(400, 'required'),
    refused(400, 'required'),
    refused(400, 'required'),
    { action: 'create', identity: String },
  ])
  const made = (await call('GET', '/admin/identities')).json().identities as { id: string; traits: object }[]
  matchList(t, made, [{ traits: { email: 'a@x.example' } }, { traits: { email: 'c@x.example' } }])
  const told = reply.json().identities as { identity?: string }[]
  t.same(
    made.map(({ id }) => id),
    [told[0]?.identity, told[7]?.identity],
  )
  const many = Array.from({ length: 1000 }, (_, n) => ({ create: { traits: person(`p${n}@x.example`) } }))
  const pending = json('PATCH', '/admin/identities', { identities: many })
  const between = await call('GET', '/admin/identities?page_size=500')
  t.ok(
    (between.json().identities as object[]).length < 500,
    'another request is served while 1000 identities are created',
  )
  const outcomes = (await pending).json().identities as { action: string }[]
  t.equal(outcomes.filter(({ action }) => action === 'create').length, 1000)
})

t.test('lists are paged with a page size and tokens', async t => {
  const { call, json } = await started(t)
  const ids: string[] = []
  for (let count = 0; count < 5; count++) {
    ids.push(
      (
        await json('POST', '/admin/identities', {
          traits: { email: `p${count}@x.example`, name: { first: 'P' } },
        })
      ).json().id,
    )
  }
  const seen: string[] = []
  let path: string | undefined = '/admin/identities?page_size=2'
  while (path) {
    const page: Reply = await call('GET', path)
    seen.push(...(page.json().identities as { id: string }[]).map(({ id }) => id))
    path = /^<([^>]+)>; rel="next"$/.exec(page.header('link'))?.[1]
    t.equal(page.json().next_page_token === null, path === undefined)
  }
  t.same(seen, ids)
  const all = (await call('GET', '/admin/identities?page_size=501')).json().identities as object[]
  t.equal(all.length, 5, 'a page size above the maximum means the maximum')
  const first = (await call('GET', '/admin/identities?pageLimit=2')).json()
  const rest = (await call('GET', `/admin/identities?pageToken=${first.next_page_token}`)).json()
  const both = [first, rest].flatMap(page => page.identities as { id: string }[])
  t.same(
    both.map(({ id }) => id),
    ids,
    'the parameter names of the directory service work too',
  )
  for (const query of [
    'page_size=0',
    'page_size=2&pageLimit=2',
    'page_size=x',
    'page_size=1e2',
    'page_token=x',
    'page_token=../..',
  ]) {
    t.equal((await call('GET', `/admin/identities?${query}`)).status, 400, query)
  }
})
