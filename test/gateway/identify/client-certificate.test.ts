/** Certificates that name projects, over HTTP/1.1 and HTTP/2, through a whole gateway. */
import { writeFileSync } from 'node:fs'
import { Agent, request as requestHttps } from 'node:https'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { alternativeNames } from '../../../gateway/listen/client-certificate.js'
import {
  canMakeCertificates,
  type Identity,
  issueCertificate,
  makeCertificate,
} from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'

const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production }
  - { id: CapCo, plan: scale, environment: staging }
  - { id: "prod:api", plan: scale, environment: staging }
`

async function start(t: Test, { auth = 'request', identify = '{ plugin: client-certificate }' } = {}) {
  const folder = temporaryFolder(t, 'mtls')
  const served = makeCertificate(folder, 'localhost')
  const authority = makeCertificate(folder, 'authority')
  const stranger = makeCertificate(folder, 'stranger')
  const upstream = await startApp(t, (req, res) =>
    res.end(`${req.headers['x-sluice-project']} ${req.headers['x-sluice-plan']}`),
  )
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    routeSettings: 'auth: required',
    settings: `identify: [${identify}]\n`,
    tls: { ...served, settings: { clientCa: authority.certFile, clientAuth: auth } },
  })
  const get = (identity?: Identity) =>
    new Promise<{ status: number; body: string; challenge: unknown }>((resolve, reject) => {
      const options = { ca: served.cert, servername: 'localhost', agent: false as const, ...identity }
      const sent = requestHttps(
        `${gateway.url.replace('127.0.0.1', 'localhost')}/x`,
        options,
        async answer => {
          let body = ''
          for await (const chunk of answer) body += chunk
          resolve({
            status: answer.statusCode as number,
            body,
            challenge: answer.headers['www-authenticate'],
          })
        },
      )
      sent.on('error', reject).end()
    })
  return {
    ...gateway,
    ca: served.cert,
    authority,
    get,
    issue: (name: string, names: string) => issueCertificate(folder, authority, name, names),
    foreign: (name: string, names: string) => issueCertificate(folder, stranger, name, names),
  }
}

t.test('a certificate of the authority names the project; another one, or none, does not', async t => {
  if (!canMakeCertificates(t)) return
  const { get, issue, foreign } = await start(t)
  t.match(await get(issue('one', 'DNS:acme')), { status: 200, body: 'acme growth' })
  t.match(await get(issue('two', 'DNS:other.test')), { status: 200, body: 'other.test developer' })
  t.match(await get(issue('cap', 'DNS:CAPco')), { body: 'CapCo scale' }, 'DNS names have no case')
  t.match(await get(issue('both', 'DNS:other.test,DNS:acme')), { body: 'acme growth' }, 'a listed one first')
  t.match(await get(), { status: 401, body: /credential-missing/, challenge: 'Client-Certificate' })
  t.match(await get(foreign('acme', 'DNS:acme')), { status: 401, body: /credential-invalid/ })
  t.match(await get(issue('nameless', '')), { status: 401, body: /credential-invalid/ })
})

t.test('the project may be in the common name, or in a URI', async t => {
  if (!canMakeCertificates(t)) return
  const named = await start(t, {
    identify: '{ plugin: client-certificate, project: subject-cn, projects: known }',
  })
  t.match(await named.get(named.issue('acme', 'DNS:other.test')), { body: 'acme growth' })
  t.match(await named.get(named.issue('nobody', 'DNS:acme')), { status: 401 })
  const uri = await start(t, { identify: '{ plugin: client-certificate, project: san-uri }' })
  t.match(await uri.get(uri.issue('spiffe', 'URI:spiffe://acme.test/prod/api')), { body: 'prod:api scale' })
  t.match(await uri.get(uri.issue('urn', 'URI:urn:machine:7')), { body: 'urn:machine:7 developer' })
})

t.test('a file of authorities that was cut off is refused, and those in force stay', async t => {
  if (!canMakeCertificates(t)) return
  const { authority, get, issue, reloader } = await start(t)
  const { certFile, cert } = authority
  writeFileSync(certFile, cert.repeat(2).slice(0, -100))
  t.match(await reloader.reload('admin'), {
    result: 'refused',
    problems: [{ path: 'listen.tls.clientCa', message: /is cut off/ }],
  })
  writeFileSync(certFile, cert)
  t.match(await get(issue('one', 'DNS:acme')), { status: 200 })
})

t.test('where certificates are required, a handshake without a valid one fails', async t => {
  if (!canMakeCertificates(t)) return
  const { get, issue, foreign } = await start(t, { auth: 'require' })
  t.match(await get(issue('one', 'DNS:acme')), { status: 200 })
  await t.rejects(get())
  await t.rejects(get(foreign('one', 'DNS:acme')))
})

t.test('a connection, or a session that is resumed, does not outlive its certificate', async t => {
  if (!canMakeCertificates(t)) return
  const { url, ca, issue } = await start(t)
  const identity = issue('one', 'DNS:acme')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const get = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const options = { ca, servername: 'localhost', agent, ...identity }
      requestHttps(`${url.replace('127.0.0.1', 'localhost')}/x`, options, answer => {
        answer.resume().on('end', () => resolve(answer.statusCode))
      })
        .on('error', reject)
        .end()
    })
  t.equal(await get(), 200)
  // The certificate is for two days.
  const later = Date.now() + 3 * 86_400_000
  mock.method(Date, 'now', () => later)
  t.teardown(() => mock.restoreAll())
  t.equal(await get(), 401)
})

t.test('names are read as Node writes them, and none if one of them cannot be', async t => {
  t.same(alternativeNames('DNS:a.test, URI:urn:x, IP Address:127.0.0.1'), [
    ['DNS', 'a.test'],
    ['URI', 'urn:x'],
    ['IP Address', '127.0.0.1'],
  ])
  t.same(alternativeNames('DNS:"a.test, DNS:acme", DNS:b.test'), [
    ['DNS', 'a.test, DNS:acme'],
    ['DNS', 'b.test'],
  ])
  for (const text of ['DNS:a.test, acme', 'DNS:"a', 'DNS:"\\x", DNS:acme', ', DNS:acme'])
    t.same(alternativeNames(text), [], text)
  t.same(alternativeNames(), [])
})
