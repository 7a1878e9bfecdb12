import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { start } from '../../../services/identity/index.js'
import { mongoUrl } from '../../helpers/mongo.js'
import { formData, tag } from './form-data.js'
import { HTML, PERSON, REGISTRATION, type Reply, started } from './started.js'

t.test('a form that is filled in becomes a typed identity', async t => {
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

t.test('a browser is led to a page, another client gets JSON', async t => {
  const { call, form } = await started(t)
  const created = await form(PERSON, { accept: HTML })
  t.equal(created.status, 303)
  const done = await call('GET', created.header('location'), { accept: HTML })
  t.equal(done.status, 200)
  t.match(done.text, /Your registration is complete/)
  t.notMatch(done.text, /Ann/, 'nobody is signed in, so nothing is shown')
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
  const nodes = await call('GET', REGISTRATION, { accept: 'application/json' })
  t.match(nodes.json(), {
    action: REGISTRATION,
    method: 'POST',
    nodes: [{ name: 'traits.email', input: 'email', required: true }],
  })
})

t.test('one e-mail address registers once in a project, whatever its letter case', async t => {
  const { form, json } = await started(t)
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

t.test('identities of another project do not exist', async t => {
  const { form, call, json } = await started(t)
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

t.test('PUT replaces, PATCH merges and null removes, DELETE deletes', async t => {
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

t.test('many identities are created at once, each by itself and in order', async t => {
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
  t.match(reply.json().identities, [
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
  t.match(made, [{ traits: { email: 'a@x.example' } }, { traits: { email: 'c@x.example' } }])
  const told = reply.json().identities as { identity?: string }[]
  t.same(
    made.map(({ id }) => id),
    [told[0]?.identity, told[7]?.identity],
  )
  const many = Array.from({ length: 1000 }, (_, n) => ({ create: { traits: person(`p${n}@x.example`) } }))
  const pending = json('PATCH', '/admin/identities', { identities: many })
  const between = await call('GET', '/admin/identities?page_size=500')
  t.ok((between.json().identities as object[]).length < 500, 'others are served in between')
  const outcomes = (await pending).json().identities as { action: string }[]
  t.equal(outcomes.filter(({ action }) => action === 'create').length, 1000)
})

t.test('pages have a size and lead on by a token', async t => {
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
  for (const query of [
    'page_size=0',
    'page_size=501',
    'page_size=x',
    'page_size=1e2',
    'page_token=x',
    'page_token=../..',
  ]) {
    t.equal((await call('GET', `/admin/identities?${query}`)).status, 400, query)
  }
})

t.test('every refusal has one shape and says what to do', async t => {
  const { call, json, form, lines } = await started(t)
  const type = { 'content-type': 'application/json' }
  const cases: [Promise<Reply>, number, string][] = [
    [call('GET', '/nowhere'), 404, 'not_found'],
    [call('POST', '/self-service/recovery', type, '{}'), 404, 'not_found'],
    [call('GET', '/admin/identities/../%2e%2e/x'), 404, 'not_found'],
    [call('GET', '/%zz'), 400, 'malformed'],
    [call('DELETE', REGISTRATION), 405, 'method_not_allowed'],
    [call('PUT', '/admin/identities', type, '{}'), 405, 'method_not_allowed'],
    [json('PATCH', '/admin/identities', { identities: 'x' }), 400, 'identities'],
    [json('PATCH', '/admin/identities', { identities: new Array(1001).fill(0) }), 400, 'identities'],
    [call('GET', '/sessions/whoami'), 401, 'no_session'],
    [call('POST', REGISTRATION, { 'content-type': 'text/plain' }, 'x'), 415, 'unsupported_media_type'],
    [call('POST', REGISTRATION), 415, 'unsupported_media_type'],
    [form(PERSON, { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type'],
    [form(`traits.email=${'x'.repeat(1024 * 1024)}`), 413, 'too_large'],
    [form('a=&'.repeat(6000)), 413, 'too_large'],
    [call('POST', '/admin/identities', type, '{"traits":'), 400, 'malformed'],
    [call('POST', '/admin/identities', type, '[]'), 400, 'malformed'],
    [call('POST', '/admin/identities', {}, '{}'), 415, 'unsupported_media_type'],
    [json('POST', '/admin/identities', {}), 400, 'required'],
    [json('POST', '/admin/identities', { schema_id: 'x', traits: {} }), 400, 'schema_id'],
    [json('POST', '/admin/identities', { traits: [] }), 400, 'type'],
    [json('PATCH', '/admin/identities/x', { traits: {} }), 404, 'not_found'],
    [call('GET', `/admin/identities/${'x'.repeat(201)}`), 404, 'not_found'],
    [call('DELETE', `/admin/identities/${'%00'.repeat(5000)}`), 404, 'not_found'],
  ]
  for (const [pending, status, code] of cases) {
    const reply = await pending
    t.equal(reply.status, status, `${status} ${code}`)
    t.match(reply.json().errors, [{ path: String, code, message: /\.$/ }])
    t.equal(reply.header('cache-control'), 'no-store')
  }
  t.equal((await call('DELETE', REGISTRATION)).header('allow'), 'GET, HEAD, POST')
  for (const [method, path, status] of [
    ['GET', '/nowhere', 404],
    ['DELETE', REGISTRATION, 405],
    ['GET', '/sessions/whoami', 401],
  ] as const) {
    const page = await call(method, path, { accept: HTML })
    t.equal(page.status, status)
    t.match(page.header('content-type'), /^text\/html/)
    t.match(page.text, /<h1>This did not work<\/h1>\n<p>[^<]+\.<\/p>/, 'a person reads a sentence')
  }
  t.equal((await call('HEAD', REGISTRATION)).status, 200)
  t.same(lines, [], 'nothing a client does wrong fills the log')
})

t.test('a broken connection and a broken multipart body harm nobody', async t => {
  const { service, call, lines } = await started(t)
  const { port, hostname } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST ${REGISTRATION} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=X\r\nContent-Length: 500\r\n\r\n--X\r\n`,
  )
  await new Promise(resolve => setTimeout(resolve, 50))
  socket.destroy()
  const head = { 'content-type': 'multipart/form-data; boundary=X' }
  for (const body of [
    '',
    '--X',
    '--X\r\n\r\n',
    '--X--',
    '--X\r\nContent-Disposition: form-data; name="traits.email"\r\n\r\na',
    '\0'.repeat(9),
  ]) {
    const reply = await call('POST', REGISTRATION, head, body)
    t.equal(reply.status, 400, JSON.stringify(body))
  }
  const chunked = await new Promise<number>((resolve, reject) => {
    const request = httpRequest(service.url + REGISTRATION, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    })
    request.on('response', response => resolve(response.resume().statusCode ?? 0)).on('error', reject)
    request.write('{"traits":')
    request.end('{}}')
  })
  t.equal(chunked, 400)
  t.equal((await call('GET', REGISTRATION)).status, 200)
  t.same(lines, [])
})

/** What must hold whichever store is behind. */
async function concurrency(t: Test, env: NodeJS.ProcessEnv): Promise<void> {
  const { json, call, form } = await started(t, env)
  for (let round = 0; round < 5; round++) {
    const twins = ['p', 'P'].map(letter =>
      form(`traits.email=${letter}${round}@x.example&traits.name.first=P`),
    )
    t.same((await Promise.all(twins)).map(({ status }) => status).sort(), [201, 409])
  }
  const created = await json('POST', '/admin/identities', {
    traits: { email: 'a@x.example', name: { first: 'A' }, interests: [] },
  })
  const path = created.header('location')
  const fields = { age: 1, height: 2, birthday: '2001-02-03', language: 'de', newsletter: true }
  const patches = Object.entries(fields).map(([name, value]) =>
    json('PATCH', path, { traits: { [name]: value } }),
  )
  for (const { status } of await Promise.all(patches)) t.equal(status, 200)
  t.same((await call('GET', path)).json().traits, {
    email: 'a@x.example',
    name: { first: 'A' },
    interests: [],
    ...fields,
  })
}

t.test(
  'of two registrations at once with one address one succeeds, and parallel changes lose nothing',
  async t => {
    await t.test('SQLite', t => concurrency(t, {}))
    await t.test('MongoDB', async t => {
      const url = await mongoUrl(t)
      if (url !== undefined) await concurrency(t, { MONGODB_URL: url })
    })
  },
)

/** `url` through a proxy of our own, which can stop to pass anything on. */
async function stallable(t: Test, url: string) {
  const [, start, credentials = '', host, port, rest] =
    /^(mongodb:\/\/)([^@/]*@)?([^:/,]+):(\d+)[^/]*(\/[^?]*)/.exec(url) ?? []
  const wire = { stalled: false }
  const proxy = createServer(near => {
    const far = connect(Number(port), host)
    near.on('data', chunk => wire.stalled || far.write(chunk)).on('close', () => far.destroy())
    far.on('data', chunk => near.write(chunk)).on('close', () => near.destroy())
    for (const end of [near, far]) end.on('error', () => end.destroy())
    t.teardown(() => near.destroy())
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  const options = new URLSearchParams(new URL(url.replace(/^mongodb/, 'http')).search)
  for (const [name, value] of Object.entries({
    directConnection: 'true',
    serverSelectionTimeoutMS: '500',
    connectTimeoutMS: '500',
    socketTimeoutMS: '500',
  }))
    options.set(name, value)
  const at = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return { wire, url: `${start}${credentials}${at}${rest}?${options}` }
}

t.test('while MongoDB does not answer every request is told to come back, then all is as before', async t => {
  const given = await mongoUrl(t)
  if (given === undefined) return
  const { wire, url } = await stallable(t, given)
  const { form, call, lines } = await started(t, { MONGODB_URL: url })
  t.equal((await form(PERSON)).status, 201)
  wire.stalled = true
  for (const reply of [await call('GET', '/admin/identities'), await form(PERSON)]) {
    t.equal(reply.status, 503)
    t.equal(reply.header('retry-after'), '5')
    t.match(reply.json().errors, [{ path: '', code: 'store_unavailable', message: /Try again soon/ }])
  }
  t.equal(lines.length, 2)
  t.notMatch(lines.join(), /127\.0\.0\.1|Ann/)
  wire.stalled = false
  let reply = await call('GET', '/admin/identities')
  for (let tries = 0; reply.status === 503 && tries < 20; tries++) {
    reply = await call('GET', '/admin/identities')
  }
  t.match(reply.json().identities, [{ traits: { email: 'Ann@x.example' } }])
})

t.test('identities outlive the process', async t => {
  const first = await started(t)
  const { id } = (await first.form(PERSON)).json()
  const second = await started(t, { DATA_DIR: first.folder })
  t.equal((await second.call('GET', `/admin/identities/${id}`)).status, 200)
})

t.test("a schema of one's own is used, a broken one stops the start with a sentence", async t => {
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
