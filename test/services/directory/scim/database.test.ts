import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { okta, patchOp, startService } from '../harness.js'
import { find } from '../providers.js'

/** A connection to a server that can be silenced or cut. */
async function startLine(t: Test, port: number) {
  const sockets = new Set<Socket>()
  let silent = false
  const line = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', data => silent || to.write(data))
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
    }
  })
  const cut = (): void => {
    line.close()
    for (const socket of sockets) socket.destroy()
  }
  await new Promise<void>(resolve => line.listen(0, '127.0.0.1', resolve))
  t.teardown(cut)
  const silence = (on: boolean): void => {
    silent = on
  }
  return { port: (line.address() as AddressInfo).port, silence, cut }
}

t.test(
  'without its database the service responds 503 in the format of each API, and recovers after a silence',
  async t => {
    const url = await mongoUrl(t)
    if (url === undefined) return
    const address = new URL(url)
    const line = await startLine(t, Number(address.port))
    address.port = String(line.port)
    for (const name of ['connectTimeoutMS', 'socketTimeoutMS', 'serverSelectionTimeoutMS']) {
      address.searchParams.set(name, '400')
    }
    const service = await startService(t, { MONGODB_URL: address.href })
    const { scim, tenant } = await service.directory()
    t.equal((await scim('POST', '/Users', okta('ada'))).status, 201)
    const unavailable = { status: 503, body: { status: '503', detail: /cannot be reached/ } }
    line.silence(true)
    const answer = await scim('GET', '/Users', undefined, { 'x-sluice-request-id': 'req-1' })
    t.match(answer, unavailable)
    t.equal(answer.headers.get('retry-after'), '1')
    t.ok(
      service.logged.some(entry => entry.includes('requests that need it get 503')),
      'a log line says what fails',
    )
    line.silence(false)
    await waitUntil('the database', async () => (await scim('GET', '/Users')).status === 200)

    line.cut()
    t.match(await scim('POST', '/Users', okta('eve')), unavailable)
    const listed = await service.manage('GET', `?tenant=${tenant}&product=app`)
    t.match(listed, { status: 503, body: { data: null, error: { code: 503, message: /cannot be reached/ } } })
    t.equal(listed.headers.get('retry-after'), '1')
  },
)

t.test(
  'the SCIM API refuses unknown directories, wrong secrets and malformed requests with SCIM errors',
  async t => {
    const service = await startService(t)
    const one = await service.directory()
    const two = await service.directory()
    const path = `/api/scim/v2.0/${one.id}/Users`
    const error = (status: number, more: object = {}) => ({
      status,
      body: {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: String(status),
        detail: String,
        ...more,
      },
    })
    t.match(await service.call('GET', '/api/scim/v2.0/unknown/Users'), error(404))
    t.match(await service.call('GET', `/api/scim/v2.0/${'x'.repeat(9000)}/Users`), error(404))
    t.match(await service.call('GET', `${path}/${'x'.repeat(9000)}`), error(401))
    t.match(await one.scim('GET', `/Users/${'x'.repeat(9000)}`), error(404))
    t.match(await service.call('GET', path), error(401))
    for (const authorization of [
      'non-token',
      `Bearer ${two.secret}`,
      `Basic ${one.secret}`,
      `Bearer ${one.secret}x`,
      'Bearer',
    ]) {
      t.match(
        await service.call('GET', path, undefined, { authorization }),
        error(401),
        authorization.slice(0, 9),
      )
    }
    for (const authorization of [`bearer ${one.secret}`, one.secret]) {
      t.equal((await service.call('GET', path, undefined, { authorization })).status, 200)
    }
    const { scim } = one
    t.match(await scim('GET', '/Unknown'), error(404))
    t.match(await scim('DELETE', '/Users'), error(405))
    t.match(await scim('POST', '/Users', '{"userName":'), error(400, { scimType: 'invalidSyntax' }))
    t.match(await scim('POST', '/Users', ''), error(400, { scimType: 'invalidSyntax' }))
    t.match(await scim('POST', '/Users', '[1]'), error(400, { scimType: 'invalidSyntax' }))
    t.match(await scim('POST', '/Users', {}), error(400, { scimType: 'invalidValue' }))
    t.match(await scim('POST', '/Users', 'x', { 'content-type': 'text/plain' }), error(415))
    for (const encoding of ['gzip', 'identity, br']) {
      t.match(
        await scim('POST', '/Users', okta('zip'), { 'content-encoding': encoding }),
        error(415),
        encoding,
      )
    }
    t.match(await scim('POST', '/Users', okta('plain'), { 'content-encoding': 'identity' }), { status: 201 })
    t.match(await scim('POST', '/Users', okta('x', { note: 'x'.repeat(1024 * 1024) })), error(413))
    t.match(await scim('GET', '/Users?filter=a&filter=b'), error(400))
    t.match(await scim('GET', '/Users?count=many'), error(400))
    t.match(await scim('GET', `/Users${find('userName eq')}`), error(400, { scimType: 'invalidFilter' }))
    t.match(await scim('PATCH', '/Users/unknown', patchOp({ op: 'add', path: 'x', value: 1 })), error(404))
  },
)
