import t from 'tap'
import { formData, tag } from './form-data.js'
import { HTML, PERSON, REGISTRATION, type Reply, started } from './started.js'
import { MULTIPART, multipart, URL_ENCODED } from './submit.js'

const SETTINGS = '/self-service/settings'
const ADMIN = '/admin/identities'

/** The cookie an answer sets, as the browser sends it back. */
const cookieOf = (reply: Reply) => reply.header('set-cookie').split(';')[0] as string
const identityIn = (reply: Reply) => reply.json().identity as { traits: object }
const encoded = (entries: readonly (readonly [string, string])[]) =>
  entries.map(pair => pair.map(encodeURIComponent).join('=')).join('&')

t.test('who registered changes the own details by form, and nobody else knows them', async t => {
  const { form, call } = await started(t)
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
  t.notMatch(page.text, /<option value="en" selected/, 'a default is not what is stored')

  const both = `${cookie}; ${cookieOf(page)}`
  const edited = formData(page.text).map(([name, value]): [string, string] =>
    name === 'traits.name.last' ? [name, 'Lee'] : [name, value],
  )
  const asForm = { accept: HTML, cookie: both, 'content-type': URL_ENCODED }
  const saved = await call('POST', SETTINGS, asForm, encoded(edited))
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
    encoded(edited.map(([n, v]) => [n, v === 'Lee' ? 'Late' : v])),
  )
  t.equal(late.status, 412, 'the form showed an older version')
  t.match(late.text, /changed by somebody else/)
  t.match(tag(late.text, 'traits.name.last'), { value: 'Late' }, 'what was typed stays')
  const again = await call('POST', SETTINGS, asForm, encoded(formData(late.text)))
  t.equal(again.status, 303, 'saving again replaces it')
  const wrong = await call('POST', SETTINGS, asForm, encoded([...formData(late.text), ['traits.email', 'x']]))
  t.equal(wrong.status, 400)
  t.match(wrong.text, /This was sent more than once/)

  const forged = cookie.replace(/.$/, end => (end === 'A' ? 'B' : 'A'))
  for (const other of ['', forged, cookie.replace('=', '=x'), 'sluice_identity=a.b.c', 'sluice_identity=']) {
    const reply = await call('GET', SETTINGS, { accept: HTML, cookie: other })
    t.equal(reply.status, 401, other)
    t.notMatch(reply.text, /Ann/)
  }
  const elsewhere = await call('GET', SETTINGS, { cookie, 'x-sluice-project': 'other' })
  t.match([elsewhere.status, elsewhere.json()], [401, { errors: [{ code: 'unknown_person' }] }])
})

t.test('PUT replaces and PATCH merges the own details', async t => {
  const { form, json, call } = await started(t)
  const cookie = cookieOf(await form(`${PERSON}&traits.age=3&traits.name.last=Lee`))
  const as = { cookie }
  const traits = async () =>
    identityIn(await call('GET', SETTINGS, { accept: 'application/json', cookie })).traits
  const merged = await json('PATCH', SETTINGS, { traits: { age: null, name: { last: 'Ray' } } }, as)
  t.equal(merged.status, 200)
  t.same(merged.json().traits, { email: 'Ann@x.example', name: { first: 'Ann', last: 'Ray' } })
  await json('PATCH', SETTINGS, { 'traits.age': '29', 'traits.name.last': null }, as)
  t.same(await traits(), { email: 'Ann@x.example', name: { first: 'Ann' }, age: 29 }, 'flat names are typed')
  const byForm = { ...as, 'content-type': URL_ENCODED }
  t.equal((await call('PATCH', SETTINGS, byForm, 'traits.age=30&traits.name.first=')).status, 200)
  t.same(await traits(), { email: 'Ann@x.example', name: { first: 'Ann' }, age: 30 }, 'blank changes nothing')
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
  t.equal((await json('PUT', SETTINGS, taken, as)).status, 401, 'a deleted identity is held by nobody')
})

t.test('If-Match keeps a writer from undoing what another wrote', async t => {
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

t.test('no other site can post a form through a browser', async t => {
  const { form, call } = await started(t)
  const host = { 'x-forwarded-host': 'acme.example' }
  const origins: [Record<string, string>, number][] = [
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site', origin: 'https://acme.example' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'https://acme.example:8443' }, 403],
    [{ origin: '%' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'null' }, 201],
    [{ 'sec-fetch-site': 'none' }, 201],
    [{ origin: 'https://acme.example' }, 201],
    [{ origin: 'http://ACME.example:80' }, 201],
    [{}, 201],
  ]
  for (const [at, [headers, status]] of origins.entries()) {
    const reply = await form(`traits.email=p${at}%40x.example&traits.name.first=P`, { ...host, ...headers })
    t.equal(reply.status, status, JSON.stringify(headers))
    if (status === 403) t.match(reply.json().errors, [{ code: 'foreign' }])
  }
  const cookie = cookieOf(await form(PERSON))
  for (const method of ['POST', 'PUT', 'PATCH']) {
    const foreign = { cookie, 'sec-fetch-site': 'cross-site', 'content-type': URL_ENCODED }
    t.equal((await call(method, SETTINGS, foreign, PERSON)).status, 403, method)
  }
})

t.test('a browser that was shown a form has to send its token', async t => {
  const { call, form } = await started(t)
  const page = await call('GET', REGISTRATION, { accept: HTML })
  t.match(page.header('set-cookie'), /^sluice_csrf=[\w-]{24}; Path=\/self-service; HttpOnly; SameSite=Lax$/)
  const cookie = cookieOf(page)
  const token = formData(page.text).find(([name]) => name === 'csrf_token')?.[1] as string
  t.equal(tag(page.text, 'csrf_token'), undefined, 'it is hidden')
  t.equal(
    (await call('GET', REGISTRATION, { accept: HTML, cookie })).header('set-cookie'),
    '',
    'one for all tabs',
  )
  const json = await call('GET', REGISTRATION, { accept: 'application/json', cookie })
  t.equal(json.json().csrf_token, token)

  for (const sent of ['', '&csrf_token=', `&csrf_token=${token}x`, '&csrf_token=x']) {
    const refused = await form(PERSON + sent, { cookie })
    t.match([refused.status, refused.json().errors], [403, [{ path: '', code: 'csrf' }]], sent)
  }
  const shown = await form(`${PERSON}&csrf_token=old`, { cookie, accept: HTML })
  t.equal(shown.status, 403)
  t.match(tag(shown.text, 'traits.name.first'), { value: 'Ann' }, 'nothing has to be typed again')
  const other = { cookie: 'sluice_csrf=otherotherotherotherothe' }
  t.equal((await form(`${PERSON}&csrf_token=${token}`, other)).status, 403, 'a token goes with its cookie')
  t.equal((await form(`${encoded(formData(shown.text))}`, { cookie, accept: HTML })).status, 303)
  const parts = multipart([
    ['csrf_token', token],
    ['traits.email', 'm@x.example'],
    ['traits.name.first', 'M'],
  ])
  t.equal((await call('POST', REGISTRATION, { cookie, 'content-type': MULTIPART }, parts)).status, 201)
  const secure = await call('GET', REGISTRATION, { accept: HTML, 'x-forwarded-proto': 'https' })
  t.match(secure.header('set-cookie'), /; Secure$/)
})

t.test('administration is for this machine, or for whoever has a key when keys are set', async t => {
  const open = await started(t)
  const from = (client: string) => open.call('GET', ADMIN, { 'x-forwarded-for': client })
  for (const client of ['127.0.0.1', '::1', '127.9.9.9', '::ffff:127.0.0.1']) {
    t.equal((await from(client)).status, 200, client)
  }
  for (const client of [
    '203.0.113.9',
    '203.0.113.9, 127.0.0.1',
    '127.0.0.1, 10.0.0.1',
    '2001:db8::1',
    'x',
    '',
  ]) {
    const reply = await from(client)
    t.match(
      [reply.status, reply.json().errors],
      [403, [{ code: 'forbidden', message: /IDENTITY_ADMIN_KEYS/ }]],
      client,
    )
  }
  t.match(open.service.notes.join('\n'), /answers this machine only/)

  const keyed = await started(t, { IDENTITY_ADMIN_KEYS: 'first-key, second-key' })
  t.notMatch(keyed.service.notes.join('\n'), /this machine only/)
  const remote = { 'x-forwarded-for': '203.0.113.9' }
  for (const method of ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'] as const) {
    const path = method === 'PUT' || method === 'DELETE' ? `${ADMIN}/x` : ADMIN
    const reply = await keyed.json(method, path, method === 'GET' ? undefined : {})
    t.match([reply.status, reply.json().errors], [401, [{ code: 'unauthorized' }]], method)
  }
  for (const authorization of [
    'Api-Key wrong-key',
    'Api-Key',
    'first-key',
    'Basic first-key',
    'Api-Key first-key,',
  ]) {
    t.equal((await keyed.call('GET', ADMIN, { authorization })).status, 401, authorization)
  }
  for (const authorization of ['Api-Key first-key', 'bearer second-key']) {
    t.equal((await keyed.call('GET', ADMIN, { ...remote, authorization })).status, 200, authorization)
  }
  t.equal((await keyed.form(PERSON, remote)).status, 201, 'registration is for everybody')
  await t.rejects(started(t, { IDENTITY_ADMIN_KEYS: 'short' }), { message: /at least 8 characters/ })
  await t.rejects(started(t, { IDENTITY_ADMIN_KEYS: 'long enough,' }), { message: /IDENTITY_ADMIN_KEYS/ })
})
