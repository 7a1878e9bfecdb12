/** Failures and how they are reported: requests, connections, concurrent writers, an unreachable store. */
import { request as httpRequest } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { Collection, MongoServerError } from 'mongodb'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { HTML, PERSON, REGISTRATION, type Reply, started } from './started.js'

t.test('every refusal has the same shape and a message', async t => {
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
    t.match(
      page.text,
      /<h1>This did not work<\/h1>\n<p>[^<]+\.<\/p>/,
      'the page says in a sentence what went wrong',
    )
  }
  t.equal((await call('HEAD', REGISTRATION)).status, 200)
  t.same(lines, [], 'refused requests are not logged')
})

t.test('after a broken connection and malformed bodies the service still responds', async t => {
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

/** What must hold for every store. */
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
  'of two simultaneous registrations of one address one succeeds, and parallel changes are all kept',
  async t => {
    await t.test('SQLite', t => concurrency(t, {}))
    await t.test('MongoDB', async t => {
      const url = await mongoUrl(t)
      if (url !== undefined) await concurrency(t, { MONGODB_URL: url })
    })
  },
)

/** `url` through a proxy that can stop forwarding. */
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

t.test(
  'while MongoDB does not respond requests get 503 with Retry-After, and later they work again',
  async t => {
    const given = await mongoUrl(t)
    if (given === undefined) return
    const { wire, url } = await stallable(t, given)
    const { form, call, lines } = await started(t, { MONGODB_URL: url })
    t.equal((await form(PERSON)).status, 201)
    wire.stalled = true
    for (const reply of [await call('GET', '/admin/identities'), await form(PERSON)]) {
      t.equal(reply.status, 503)
      t.equal(reply.header('retry-after'), '5')
      t.match(reply.json().errors, [{ path: '', code: 'store_unavailable', message: /Try again shortly/ }])
    }
    t.equal(lines.length, 1, 'two failed requests log one line')
    t.notMatch(lines.join(), /127\.0\.0\.1|Ann/)
    wire.stalled = false
    let reply = await call('GET', '/admin/identities')
    for (let tries = 0; reply.status === 503 && tries < 20; tries++) {
      reply = await call('GET', '/admin/identities')
    }
    t.match(reply.json().identities, [{ traits: { email: 'Ann@x.example' } }])
  },
)

t.test('MongoDB without disk space, without a primary or with a broken socket means 503', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const { form, call, service } = await started(t, { MONGODB_URL: url })
  const election = new MongoServerError({ message: 'not primary', code: 10107 })
  election.addErrorLabel('RetryableWriteError')
  const failures: [Error, fault: string, count: number][] = [
    [new MongoServerError({ message: 'no room', code: 14031 }), 'full', 1],
    [election, 'away', 1],
    [Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }), 'away', 2],
  ]
  for (const [error, fault, count] of failures) {
    const insert = t.intercept(Collection.prototype, 'insertOne', {
      value: async () => Promise.reject(error),
    })
    const reply = await form(PERSON)
    insert.restore()
    t.match([reply.status, reply.json().errors], [503, [{ code: 'store_unavailable' }]], error.message)
    t.equal(reply.header('retry-after'), '5')
    t.match(await service.metrics(), `identity_store_errors_total{fault="${fault}"} ${count}\n`)
  }
  t.equal((await call('GET', '/admin/identities')).status, 200)
})
