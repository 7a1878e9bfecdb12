import { type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { ENGLISH } from '../../../services/identity/languages.js'
import { heldIdentity, holdIdentity } from '../../../services/identity/routes/cookies.js'
import { Signer } from '../../../services/identity/secret.js'
import { formData, tag } from './decode/form-data.js'
import { cookieOf, HTML, PERSON, REGISTRATION, started } from './started.js'
import { MULTIPART, multipart, URL_ENCODED, urlEncoded } from './submit.js'

const SETTINGS = '/self-service/settings'
const ADMIN = '/admin/identities'

t.test('a form posted from another site is refused', async t => {
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

t.test('a browser with a CSRF cookie must send the token of its form', async t => {
  const { call, form } = await started(t)
  const page = await call('GET', REGISTRATION, { accept: HTML })
  t.match(page.header('set-cookie'), /^sluice_csrf=[\w-]{24}; Path=\/self-service; HttpOnly; SameSite=Lax$/)
  const cookie = cookieOf(page)
  const token = formData(page.text).find(([name]) => name === 'csrf_token')?.[1] as string
  t.equal(tag(page.text, 'csrf_token'), undefined, 'the token has no visible field')
  t.equal(
    (await call('GET', REGISTRATION, { accept: HTML, cookie })).header('set-cookie'),
    '',
    'a second form shares the cookie',
  )
  const json = await call('GET', REGISTRATION, { accept: 'application/json', cookie })
  t.equal(json.json().csrf_token, token)

  for (const sent of ['', '&csrf_token=', `&csrf_token=${token}x`, '&csrf_token=x']) {
    const refused = await form(PERSON + sent, { cookie })
    t.match([refused.status, refused.json().errors], [403, [{ path: '', code: 'csrf' }]], sent)
  }
  const shown = await form(`${PERSON}&csrf_token=old`, { cookie, accept: HTML })
  t.equal(shown.status, 403)
  t.match(tag(shown.text, 'traits.name.first'), { value: 'Ann' }, 'the values that were typed are kept')
  const other = { cookie: 'sluice_csrf=otherotherotherotherothe' }
  t.equal(
    (await form(`${PERSON}&csrf_token=${token}`, other)).status,
    403,
    'a token is refused with another cookie',
  )
  t.equal((await form(`${urlEncoded(formData(shown.text))}`, { cookie, accept: HTML })).status, 303)
  const parts = multipart([
    ['csrf_token', token],
    ['traits.email', 'm@x.example'],
    ['traits.name.first', 'M'],
  ])
  t.equal((await call('POST', REGISTRATION, { cookie, 'content-type': MULTIPART }, parts)).status, 201)
  const secure = await call('GET', REGISTRATION, { accept: HTML, 'x-forwarded-proto': 'https' })
  t.match(secure.header('set-cookie'), /; Secure$/)
})

t.test('administration is open to this machine only, or with keys set to requests that have one', async t => {
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
  t.match(open.service.notes.join('\n'), /answers only this machine/)

  const keyed = await started(t, { IDENTITY_ADMIN_KEYS: 'the-first-key-of-many, the-second-key-of-many' })
  t.notMatch(keyed.service.notes.join('\n'), /answers only this machine/)
  const remote = { 'x-forwarded-for': '203.0.113.9' }
  for (const method of ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'] as const) {
    const path = method === 'PUT' || method === 'DELETE' ? `${ADMIN}/x` : ADMIN
    const reply = await keyed.json(method, path, method === 'GET' ? undefined : {})
    t.match([reply.status, reply.json().errors], [401, [{ code: 'unauthorized' }]], method)
  }
  for (const authorization of [
    'Api-Key wrong-key',
    'Api-Key',
    'the-first-key-of-many',
    'Basic the-first-key-of-many',
    'Api-Key the-first-key-of-many,',
  ]) {
    t.equal((await keyed.call('GET', ADMIN, { authorization })).status, 401, authorization)
  }
  for (const authorization of ['Api-Key the-first-key-of-many', 'bearer the-second-key-of-many']) {
    t.equal((await keyed.call('GET', ADMIN, { ...remote, authorization })).status, 200, authorization)
  }
  t.equal((await keyed.form(PERSON, remote)).status, 201, 'registration needs no key')
  for (const keys of ['fifteen-letters', 'long-enough-for-a-key,', 'long enough for a key']) {
    const message = /^IDENTITY_ADMIN_KEYS must be keys of at least 16 characters without spaces/
    await t.rejects(started(t, { IDENTITY_ADMIN_KEYS: keys }), { message }, keys)
  }
})

/** fetch does not let a test set the Host. */
const askedAs = (url: string, host: string, headers: Record<string, string> = {}) =>
  new Promise<number | undefined>((resolve, reject) => {
    const answered = (answer: IncomingMessage) => resolve(answer.resume().statusCode)
    request(new URL(ADMIN, url), { headers: { host, ...headers } }, answered)
      .on('error', reject)
      .end()
  })

t.test('without keys administration refuses requests under a foreign host name', async t => {
  const { service, folder } = await started(t, { BASE_URL: 'https://gateway.example.com/' })
  const own = [
    'localhost',
    'LOCALHOST:8080',
    'globex.localhost:8080',
    '127.0.0.1:1',
    '[::1]:8080',
    '10.0.0.7',
  ]
  for (const host of [...own, 'gateway.example.com']) t.equal(await askedAs(service.url, host), 200, host)
  for (const host of [
    'evil.example:8080',
    'localhost.evil.example',
    'evillocalhost',
    'localhost@evil.example',
  ]) {
    t.equal(await askedAs(service.url, host), 421, host)
  }
  const behind = { 'x-forwarded-host': 'evil.example' }
  t.equal(
    await askedAs(service.url, 'localhost', behind),
    421,
    'a foreign host name forwarded by a local proxy is refused too',
  )
  await service.close()
  const keyed = await started(t, { DATA_DIR: folder, IDENTITY_ADMIN_KEYS: 'the-first-key-of-many' })
  const authorization = 'Api-Key the-first-key-of-many'
  t.equal(
    await askedAs(keyed.service.url, 'acme.example', { authorization }),
    200,
    'a request with a key may use any host name',
  )
  await t.rejects(started(t, { BASE_URL: 'gateway.example.com' }), { message: /^BASE_URL has to be/ })
})

t.test('a client that tries administration keys gets 429, and the right key is still accepted', async t => {
  const { call, lines } = await started(t, { IDENTITY_ADMIN_KEYS: 'the-right-key-of-many' })
  const ask = (key: string) => call('GET', ADMIN, { authorization: `Bearer ${key}` })
  for (let i = 0; i < 20; i += 1) t.equal((await ask(`wrong-${i}`)).status, 401)
  const refused = await ask('wrong')
  t.match([refused.status, refused.json().errors], [429, [{ path: '', code: 'too_many_wrong_keys' }]])
  t.match(refused.header('retry-after'), /^[1-9]\d?$/)
  t.equal((await ask('the-right-key-of-many')).status, 200)
  t.equal(lines.filter(line => line.startsWith('Too many wrong keys')).length, 1)
})

t.test('the identity cookie is valid for an hour and cannot be altered', t => {
  const [old, fresh] = [Buffer.from('old'), Buffer.from('fresh')]
  const signer = new Signer([old])
  const asking = (cookie: string) => ({
    query: new URLSearchParams(),
    header: (name: string) => (name === 'cookie' ? cookie : undefined),
    body: async () => Buffer.alloc(0),
    project: 'acme',
    source: '127.0.0.1',
    peer: '127.0.0.1',
    language: ENGLISH,
    params: {},
  })
  const hour = 3_600_000
  const given = holdIdentity(signer, asking(''), 'some-id', 1000)['set-cookie'] ?? ''
  t.match(given, /; Max-Age=3600$/)
  const cookie = given.split(';')[0] as string
  t.equal(heldIdentity(signer, asking(`other=1; ${cookie}`), 999 + hour), 'some-id')
  t.equal(heldIdentity(signer, asking(cookie), 1000 + hour), undefined)
  t.equal(heldIdentity(new Signer([fresh]), asking(cookie), 1000), undefined)
  t.equal(
    heldIdentity(new Signer([fresh, old]), asking(cookie), 1000),
    'some-id',
    'a cookie signed with an older key is still valid',
  )
  const later = cookie.replace(String(1000 + hour), String(1000 + 2 * hour))
  t.not(later, cookie)
  t.equal(heldIdentity(signer, asking(later), 1000), undefined)
  t.end()
})
