import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { canMakeCertificates, makeCertificate, type TestCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { waitUntil } from '../../helpers/wait.js'

interface Upstream {
  readonly server: Server
  readonly port: number
  /** Server names the clients requested in their handshakes; false where they requested none. */
  readonly names: (string | false)[]
}

/** An https upstream that also accepts WebSockets. */
async function startUpstream(t: Test, { cert, key }: TestCertificate): Promise<Upstream> {
  const server = createServer({ cert, key }, (req, res) => res.end(`${req.method} ${req.url}`))
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => socket.on('message', data => socket.send(data)))
  const names: (string | false)[] = []
  server.on('secureConnection', socket => names.push((socket.servername as string | undefined) ?? false))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    sockets.close()
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as AddressInfo).port, names }
}

if (canMakeCertificates(t)) {
  const folder = t.testdir()
  const own = makeCertificate(folder, 'own')
  const other = makeCertificate(folder, 'other')
  const host = { host: 'acme.localhost' }

  t.test('a self-signed upstream gets 502, and only the log says why', async t => {
    const { port, names } = await startUpstream(t, own)
    const gateway = await testGateway(t, { upstream: `https://localhost:${port}` })
    const answer = await send(`${gateway.url}/a`, { headers: host })
    t.equal(answer.status, 502)
    t.equal(answer.headers['content-type'], 'application/problem+json')
    t.match(answer.json(), { code: 'upstream-unreachable' })
    t.notMatch(
      answer.body,
      /localhost|127\.0\.0\.1|self|certificate/i,
      'the client learns neither the address nor the reason',
    )

    await send(`${gateway.url}/b`, { headers: host })
    const lines = gateway.lines.filter(({ msg }) => msg === 'upstream unreachable')
    matchList(
      t,
      lines,
      [{ level: 'warn', upstream: 'app', code: 'DEPTH_ZERO_SELF_SIGNED_CERT', reason: /self-signed/ }],
      'the log says so once, not once a request',
    )
    t.same(names, [], 'no request is sent to the upstream')
  })

  t.test('a self-signed upstream is refused for a WebSocket too', async t => {
    const { port } = await startUpstream(t, own)
    const gateway = await testGateway(t, { upstream: `https://localhost:${port}` })
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/live`, { headers: host })
    const [, answer] = await once(socket, 'unexpected-response')
    t.equal(answer.statusCode, 502)
    matchList(
      t,
      gateway.lines.filter(({ msg }) => msg === 'upstream unreachable'),
      [{ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }],
    )
  })

  t.test('a self-signed upstream is served once its certificate is the configured authority', async t => {
    const { port, names } = await startUpstream(t, own)
    for (const [authority, name] of [
      [`localhost:${port}`, 'localhost'],
      [`127.0.0.1:${port}`, false],
    ] as const) {
      const gateway = await testGateway(t, { upstream: `https://${authority}`, ca: own.certFile })
      for (const path of ['/a', '/b']) {
        const answer = await send(`${gateway.url}${path}`, { headers: host })
        t.same([answer.status, answer.body], [200, `GET ${path}`], authority)
      }
      t.same(
        names,
        [name],
        'one connection is opened, and its server name is the upstream’s, not the client’s Host',
      )

      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/live`, { headers: host })
      await once(socket, 'open')
      socket.send('hello')
      const [echo] = await once(socket, 'message')
      t.equal(String(echo), 'hello', 'WebSockets pass too')
      socket.terminate()
      names.length = 0
    }
  })

  t.test('an upstream signed by another authority gets 502', async t => {
    const { port } = await startUpstream(t, own)
    const gateway = await testGateway(t, { upstream: `https://localhost:${port}`, ca: other.certFile })
    t.equal((await send(`${gateway.url}/`, { headers: host })).status, 502)
  })

  t.test('an upstream with a certificate for another name gets 502', async t => {
    const elsewhere = makeCertificate(folder, 'elsewhere', 'DNS:elsewhere.test')
    const { port } = await startUpstream(t, elsewhere)
    const gateway = await testGateway(t, { upstream: `https://localhost:${port}`, ca: elsewhere.certFile })
    t.equal((await send(`${gateway.url}/`, { headers: { host: 'elsewhere.test' } })).status, 502)
    matchList(
      t,
      gateway.lines.filter(({ msg }) => msg === 'upstream unreachable'),
      [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }],
    )
  })

  t.test('a changed authority file is used after a reload', async t => {
    const { port } = await startUpstream(t, own)
    const dir = t.testdir()
    const ca = `${dir}/ca.crt`
    copyFileSync(other.certFile, ca)
    const gateway = await testGateway(t, { upstream: `https://localhost:${port}`, ca })
    t.equal((await send(`${gateway.url}/`, { headers: host })).status, 502)
    copyFileSync(own.certFile, ca)
    await gateway.reloader.reload('admin')
    await waitUntil(
      'a good answer',
      async () => (await send(`${gateway.url}/`, { headers: host })).status === 200,
    )
    t.pass('served')
  })
}
