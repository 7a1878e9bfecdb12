/** Request bodies of the embedded services, through the gateway. */
import t from 'tap'
import { canMakeCertificates } from '../../helpers/certificates.js'
import { waitUntil } from '../../helpers/wait.js'
import { API_KEYS, type Begun, IDENTITY_ADMIN_KEYS, MIB, type Protocol, startScene } from './gateway-scene.js'

const protocols: readonly Protocol[] = canMakeCertificates(t) ? ['HTTP/1.1', 'HTTP/2'] : ['HTTP/1.1']
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const JSON_BODY = { 'content-type': 'application/json' }
const REGISTRATION = '/self-service/registration'

for (const protocol of protocols) {
  t.test(`${protocol}: what is refused is refused before its body comes`, async t => {
    const { begin } = await startScene(t, protocol)
    const identity = { authorization: `Api-Key ${IDENTITY_ADMIN_KEYS}` }
    const management = { authorization: `Api-Key ${API_KEYS}` }
    const cases: [number, string, string, Record<string, string>, number?][] = [
      [404, 'POST', '/self-service/nothing-here', FORM],
      [404, 'POST', '/self-service/nothing-here', JSON_BODY],
      [404, 'POST', '/api/nothing-here', JSON_BODY],
      [404, 'POST', '/api/scim/v2.0/nobody/Nothing/at/all', JSON_BODY],
      [404, 'POST', '/api/v1/directory-sync/a/b/c/d', { ...JSON_BODY, ...management }],
      [405, 'PUT', REGISTRATION, FORM],
      [405, 'PROPFIND', REGISTRATION, FORM],
      [405, 'PATCH', '/api/v1/directory-sync', { ...JSON_BODY, ...management }],
      [401, 'POST', '/admin/identities', JSON_BODY],
      [401, 'POST', '/admin/identities', { ...JSON_BODY, authorization: 'Api-Key wrong' }],
      [401, 'POST', '/api/v1/directory-sync', JSON_BODY],
      [404, 'POST', '/api/scim/v2.0/nobody/Users', JSON_BODY],
      [401, 'PATCH', '/self-service/settings', { ...JSON_BODY, accept: 'application/json' }],
      [415, 'POST', REGISTRATION, { 'content-type': 'text/plain' }],
      [415, 'POST', REGISTRATION, { ...FORM, 'content-encoding': 'gzip' }],
      [415, 'POST', '/admin/identities', { ...FORM, ...identity }],
      [415, 'POST', '/api/v1/directory-sync', { ...FORM, ...management }],
      [415, 'POST', '/api/v1/directory-sync', { ...JSON_BODY, ...management, 'content-encoding': 'gzip' }],
      [413, 'POST', REGISTRATION, FORM, MIB + 1],
      [413, 'POST', '/admin/identities', { ...JSON_BODY, ...identity }, MIB + 1],
      [413, 'POST', '/api/v1/directory-sync', { ...JSON_BODY, ...management }, MIB + 1],
    ]
    for (const [status, method, path, fields, length = MIB] of cases) {
      const answer = await (await begin(method, path, fields, length)).answer()
      t.equal(answer.status, status, `${method} ${path} ${fields['content-type']}`)
      if (status === 405) t.match(answer.header('allow'), /^(GET, HEAD, POST|POST, GET, HEAD)$/)
    }
  })

  t.test(`${protocol}: unfinished bodies have a budget, and each client a share of it`, async t => {
    const { begin, gateway } = await startScene(t, protocol)
    const body = Buffer.alloc(MIB - 1, 'a')
    const upload = async (client: number, bytes = body): Promise<Begun> => {
      const fields = { ...FORM, 'x-forwarded-for': `203.0.${client}.7` }
      const begun = await begin('POST', REGISTRATION, fields, bytes === body ? MIB : bytes.length)
      begun.send(bytes)
      return begun
    }
    const before = await gateway.resident()
    const own = await Promise.all(Array.from({ length: 12 }, () => upload(0)))
    await waitUntil('refusals', () => own.filter(each => each.status() !== 0).length === 4)
    const refused = own.find(each => each.status() !== 0) as Begun
    const answer = await refused.answer()
    t.equal(answer.status, 503)
    t.match(answer.header('retry-after'), /^[1-9]\d?$/)
    t.equal(
      (await (await upload(0, Buffer.from('traits.email=x'))).answer()).status,
      400,
      'a small form passes',
    )
    t.equal((await (await upload(1, Buffer.alloc(20_000))).answer()).status, 400, 'so does another client')

    const others = await Promise.all(Array.from({ length: 40 }, (_, i) => upload(2 + i)))
    await waitUntil('refusals', () => others.filter(each => each.status() === 503).length >= 16)
    t.ok(others.filter(each => each.status() === 0).length >= 20, 'the rest may go on')
    const grown = ((await gateway.resident()) - before) / MIB
    t.ok(grown < 120, `they take a bounded amount of memory (${Math.round(grown)} MiB)`)
    t.equal(
      (await (await upload(90, Buffer.from('traits.email=x'))).answer()).status,
      400,
      'a small form passes',
    )

    for (const each of [...own, ...others]) each.leave()
    await waitUntil(
      'room',
      async () => (await (await upload(0, Buffer.alloc(20_000))).answer()).status === 400,
    )
  })
}
