import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { formData, tag } from './decode/form-data.js'
import { cookieOf, HTML, PERSON, type Reply, SECRET, started } from './started.js'
import { URL_ENCODED, urlEncoded } from './submit.js'

const SETTINGS = '/self-service/settings'
const ADMIN = '/admin/identities'

const identityIn = (reply: Reply) => reply.json().identity as { traits: object }

t.test('a registered person can change their own details by form, and nobody else can read them', async t => {
  const { form, call } = await started(t, {}, SECRET)
  const registered = await form(`${PERSON}&traits.newsletter=true&traits.interests=chess`, { accept: HTML })
  t.match(
    registered.header('set-cookie'),
    /^sluice_identity=[^;]+; Path=\/self-service; HttpOnly; SameSite=Lax/,
  )
  const cookie = cookieOf(registered)
  const page = await call('GET', SETTINGS, { accept: HTML, cookie })
  t.equal(page.status, 200)
  t.match(tag(page.text, 'traits.email'), { value: 'Ann@x.example' })
  t.match(tag(page.text, 'traits.newsletter'), { checked: '' })
  t.match(tag(page.text, 'traits.interests.0'), { value: 'chess' })
  t.notMatch(page.text, /<option value="en" selected/, 'a default is not shown as a stored value')

  const both = `${cookie}; ${cookieOf(page)}`
  const edited = formData(page.text).map(([name, value]): [string, string] =>
    name === 'traits.name.last' ? [name, 'Lee'] : [name, value],
  )
  const asForm = { accept: HTML, cookie: both, 'content-type': URL_ENCODED }
  const saved = await call('POST', SETTINGS, asForm, urlEncoded(edited))
  t.equal(saved.status, 303)
  t.match(
    (await call('GET', saved.header('location'), { accept: HTML, cookie })).text,
    /role="status">Your details are saved/,
  )
  const stored = await call('GET', SETTINGS, { accept: 'application/json', cookie })
  t.same(identityIn(stored).traits, {
    email: 'Ann@x.example',
    name: { first: 'Ann', last: 'Lee' },
    interests: ['chess'],
    newsletter: true,
  })

  const late = await call(
    'POST',
    SETTINGS,
    asForm,
    urlEncoded(edited.map(([n, v]) => [n, v === 'Lee' ? 'Late' : v])),
  )
  t.equal(late.status, 412, 'a form of an older version is refused')
  t.match(late.text, /Somebody else has changed/)
  t.match(tag(late.text, 'traits.name.last'), { value: 'Late' }, 'the typed value is kept')
  const again = await call('POST', SETTINGS, asForm, urlEncoded(formData(late.text)))
  t.equal(again.status, 303, 'saving again replaces the other change')
  const wrong = await call(
    'POST',
    SETTINGS,
    asForm,
    urlEncoded([...formData(late.text), ['traits.email', 'x']]),
  )
  t.equal(wrong.status, 400)
  t.match(wrong.text, /This was sent more than once/)

  const stale = urlEncoded(edited.map(([name, value]) => [name, name === 'traits.email' ? 'x' : value]))
  const corrected = formData((await call('POST', SETTINGS, asForm, stale)).text).map(
    ([name, value]): [string, string] => [name, name === 'traits.email' ? 'ann@x.example' : value],
  )
  t.equal(
    (await call('POST', SETTINGS, asForm, urlEncoded(corrected))).status,
    412,
    'a corrected mistake does not override the change of somebody else',
  )

  const forged = cookie.replace(/.$/, end => (end === 'A' ? 'B' : 'A'))
  for (const other of ['', forged, cookie.replace('=', '=x'), 'sluice_identity=a.b.c', 'sluice_identity=']) {
    const reply = await call('GET', SETTINGS, { accept: HTML, cookie: other })
    t.equal(reply.status, 401, other)
    t.notMatch(reply.text, /Ann/)
  }
  const elsewhere = await call('GET', SETTINGS, { cookie, 'x-sluice-project': 'other' })
  t.match([elsewhere.status, elsewhere.json()], [401, { errors: [{ code: 'unknown_person' }] }])
})

t.test("PUT replaces and PATCH merges a person's own details", async t => {
  const { form, json, call } = await started(t)
  const cookie = cookieOf(await form(`${PERSON}&traits.age=3&traits.name.last=Lee`))
  const as = { cookie }
  const traits = async () =>
    identityIn(await call('GET', SETTINGS, { accept: 'application/json', cookie })).traits
  const merged = await json('PATCH', SETTINGS, { traits: { age: null, name: { last: 'Ray' } } }, as)
  t.equal(merged.status, 200)
  t.same(merged.json().traits, { email: 'Ann@x.example', name: { first: 'Ann', last: 'Ray' } })
  await json('PATCH', SETTINGS, { 'traits.age': '29', 'traits.name.last': null }, as)
  t.same(
    await traits(),
    { email: 'Ann@x.example', name: { first: 'Ann' }, age: 29 },
    'values under flat names are converted',
  )
  const byForm = { ...as, 'content-type': URL_ENCODED }
  t.equal((await call('PATCH', SETTINGS, byForm, 'traits.age=30&traits.name.first=')).status, 200)
  t.same(
    await traits(),
    { email: 'Ann@x.example', name: { first: 'Ann' }, age: 30 },
    'a blank field changes nothing',
  )
  t.match((await json('PATCH', SETTINGS, { traits: { name: null } }, as)).json().errors, [
    { path: 'traits.name.first', code: 'required' },
  ])
  t.match((await json('PATCH', SETTINGS, { 'traits.age': 'x' }, as)).json().errors, [
    { path: 'traits.age', code: 'type' },
  ])
  t.match((await call('PATCH', SETTINGS, { ...as, 'content-type': 'application/json' }, '{')).status, 400)
  const replaced = await json('PUT', SETTINGS, { traits: { email: 'n@x.example', name: { first: 'N' } } }, as)
  t.same(replaced.json().traits, { email: 'n@x.example', name: { first: 'N' } })
  await form('traits.email=taken@x.example&traits.name.first=T')
  const taken = { traits: { email: 'TAKEN@x.example', name: { first: 'N' } } }
  t.match((await json('PUT', SETTINGS, taken, as)).json().errors, [{ path: 'traits.email', code: 'taken' }])
  t.equal((await json('PATCH', SETTINGS, taken, as)).status, 409)
  await call('DELETE', `${ADMIN}/${replaced.json().id}`)
  t.equal((await json('PUT', SETTINGS, taken, as)).status, 401, 'the cookie of a deleted identity is refused')
})

t.test('PATCH changes fields of an optional object and does not create one from blank fields', async t => {
  const address = {
    type: 'object',
    required: ['city'],
    properties: {
      city: { type: 'string' },
      main: { type: 'boolean' },
      floor: { type: ['integer', 'null'] },
      tags: { type: 'array', items: { type: 'string' } },
    },
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-schema-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'address.json')
  writeFileSync(file, JSON.stringify({ properties: { traits: { type: 'object', properties: { address } } } }))
  const { form, json, call } = await started(t, { IDENTITY_SCHEMA: file })
  const all = 'traits.address.main=true&traits.address.floor=3&traits.address.tags=a'
  const cookie = cookieOf(await form(`traits.address.city=Rome&${all}`))
  const stored = async () =>
    identityIn(await call('GET', SETTINGS, { accept: 'application/json', cookie })).traits
  const patch = (body: string, as = cookie) =>
    call('PATCH', SETTINGS, { cookie: as, 'content-type': URL_ENCODED }, body)
  t.equal((await patch('traits.address.main=false')).status, 200)
  t.same(await stored(), { address: { city: 'Rome', main: false, floor: 3, tags: ['a'] } })
  t.equal((await patch('traits.address.city=&traits.address.floor=&traits.address.tags=')).status, 200)
  t.same(await stored(), { address: { city: 'Rome', main: false, tags: [] } })
  t.equal((await json('PATCH', SETTINGS, { 'traits.address.main': null }, { cookie })).status, 200)
  t.same(await stored(), { address: { city: 'Rome', tags: [] } })

  const other = cookieOf(await form(''))
  const blank = 'traits.address.city=&traits.address.main=false&traits.address.floor=&traits.address.tags='
  t.same((await patch(blank, other)).json().traits, {})
  t.match((await patch('traits.address.floor=3', other)).json().errors, [{ path: 'traits.address.city' }])
})

t.test('If-Match prevents a writer from overwriting the change of another', async t => {
  const { form, json, call } = await started(t)
  const registered = await form(PERSON)
  const cookie = cookieOf(registered)
  const path = registered.header('location')
  const traits = { email: 'n@x.example', name: { first: 'N' } }
  const first = registered.header('etag')
  t.match(first, /^"\d+"$/)
  t.equal((await call('GET', path)).header('etag'), first)
  const second = (await json('PUT', path, { traits }, { 'if-match': `"x", ${first}` })).header('etag')
  t.not(second, first)
  for (const [method, place] of [
    ['PUT', path],
    ['PATCH', path],
    ['PUT', SETTINGS],
    ['PATCH', SETTINGS],
  ] as const) {
    for (const stale of [first, `W/${second}`, second.replaceAll('"', ''), '']) {
      const reply = await json(method, place, { traits }, { 'if-match': stale, cookie })
      t.match(
        [reply.status, reply.json().errors],
        [412, [{ path: '', code: 'changed' }]],
        `${method} ${stale}`,
      )
    }
  }
  t.equal((await call('DELETE', path, { 'if-match': first })).status, 412)
  t.equal((await json('PATCH', path, { traits }, { 'if-match': '*' })).status, 200)
  const newest = (await call('GET', path)).header('etag')
  const racers = ['A', 'B', 'C'].map(first =>
    json('PATCH', path, { traits: { name: { first } } }, { 'if-match': newest }),
  )
  t.same((await Promise.all(racers)).map(({ status }) => status).sort(), [200, 412, 412])
  t.equal((await call('DELETE', path, { 'if-match': (await call('GET', path)).header('etag') })).status, 204)
  t.equal((await call('DELETE', path, { 'if-match': '*' })).status, 404)
})
