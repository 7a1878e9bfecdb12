/** Registration, by form and by JSON. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../../../services/identity/index.js'
import { formData, tag } from './decode/form-data.js'
import { HTML, PERSON, REGISTRATION, SECRET, started } from './started.js'

t.test('a submitted form becomes a typed identity', async t => {
  const { call, form, service } = await started(t)
  t.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  const page = await call('GET', REGISTRATION, { accept: HTML })
  t.equal(page.status, 200)
  t.match(page.header('content-type'), 'text/html; charset=utf-8')
  t.match(page.header('content-security-policy'), /^default-src 'none'; style-src 'sha256-/)
  const filled = new Map<string, string[]>()
  for (const [name, value] of formData(page.text)) filled.set(name, [...(filled.get(name) ?? []), value])
  filled.set('traits.email', ['ann@x.example'])
  filled.set('traits.name.first', ['Ann'])
  filled.set('traits.age', ['29'])
  filled.set('traits.height', ['1.70'])
  filled.set('traits.interests.1', ['chess'])
  filled.set('traits.newsletter', ['false', 'true'])
  const body = [...filled].flatMap(([name, values]) =>
    values.map(value => `${name}=${encodeURIComponent(value)}`),
  )
  const created = await form(body.join('&'))
  t.equal(created.status, 201)
  const identity = created.json()
  t.same(identity.traits, {
    email: 'ann@x.example',
    name: { first: 'Ann' },
    age: 29,
    height: 1.7,
    language: 'en',
    interests: ['chess'],
    newsletter: true,
  })
  t.match(identity, { id: /^[0-9a-f-]{36}$/, schema_id: 'person', created_at: /Z$/, updated_at: /Z$/ })
  t.same((await call('GET', created.header('location'))).json(), identity)
})

t.test('a browser is redirected to a page, and another client gets JSON', async t => {
  const { call, form } = await started(t)
  const created = await form(PERSON, { accept: HTML })
  t.equal(created.status, 303)
  const done = await call('GET', created.header('location'), { accept: HTML })
  t.equal(done.status, 200)
  t.match(done.text, /Your registration is complete/)
  t.notMatch(done.text, /Ann/, 'the page shows no personal data, because nobody is signed in')
  t.equal((await call('GET', `${REGISTRATION}/done?identity=x`)).status, 404)

  const refused = await form('traits.email=%3Cb%3E&traits.age=x&traits.name.first=Bo', { accept: HTML })
  t.equal(refused.status, 400)
  t.match(tag(refused.text, 'traits.name.first'), { value: 'Bo' })
  t.match(refused.text, /<a href="#traits.age">Age<\/a>/)
  const asJson = await form('traits.email=%3Cb%3E&traits.age=x&traits.name.first=Bo')
  t.same(
    asJson.json().errors.map(({ path, code }) => [path, code]),
    [
      ['traits.age', 'type'],
      ['traits.email', 'format'],
    ],
  )
  t.equal(
    (await form(PERSON.replace('Ann', 'Ben'), { accept: 'application/json, text/html;q=0.5' })).status,
    201,
  )
  const either = await call('GET', REGISTRATION, { accept: 'application/json, text/html' })
  t.match(
    either.header('content-type'),
    /^text\/html/,
    'with both types accepted the form is shown, as its POST would be',
  )
  const nodes = await call('GET', REGISTRATION, { accept: 'application/json' })
  t.match(nodes.json(), {
    action: REGISTRATION,
    method: 'POST',
    nodes: [{ name: 'traits.email', input: 'email', required: true }],
  })
})

t.test('an e-mail address can register once per project, whatever its letter case', async t => {
  const { form, json } = await started(t, {}, SECRET)
  const tries = ['Ann%40x.example', 'ann%40X.example', 'ANN%40X.EXAMPLE'].map(email =>
    form(`traits.email=${email}&traits.name.first=A`),
  )
  const replies = await Promise.all(tries)
  t.same(replies.map(({ status }) => status).sort(), [201, 409, 409])
  t.match(replies.find(({ status }) => status === 409)?.json(), {
    errors: [{ path: 'traits.email', code: 'taken' }],
  })
  t.match((await form(PERSON, { accept: HTML })).text, /This is already in use/)
  t.equal((await form(PERSON, { 'x-sluice-project': 'other' })).status, 201)
  const taken = await json('POST', '/admin/identities', {
    traits: { email: 'ann@x.example', name: { first: 'A' } },
  })
  t.equal(taken.status, 409)
})

t.test('identities survive a restart', async t => {
  const first = await started(t)
  const { id } = (await first.form(PERSON)).json()
  const second = await started(t, { DATA_DIR: first.folder })
  t.equal((await second.call('GET', `/admin/identities/${id}`)).status, 200)
})

t.test('a custom schema is used, and a broken one stops the start with a message', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-schema-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'own.json')
  const attempt = () =>
    start({
      env: { IDENTITY_SCHEMA: file, DATA_DIR: folder },
      log: { debug() {}, info() {}, warn() {}, error() {} },
    })
  await t.rejects(attempt(), { message: /own\.json cannot be read .*set IDENTITY_SCHEMA/ })
  writeFileSync(file, '{')
  await t.rejects(attempt(), { message: /identity schema .*own\.json: / })
  writeFileSync(file, '{"properties":{"traits":{"properties":{"a":{"$ref":"http://x/"}}}}}')
  await t.rejects(attempt(), { message: /must start with "#"/ })
  writeFileSync(file, '{"properties":{"traits":{"properties":{"constructor":{"type":"integer"}}}}}')
  const { form } = await started(t, { IDENTITY_SCHEMA: file })
  t.match((await form('traits.constructor=7')).json(), { schema_id: 'default', traits: { constructor: 7 } })
})
