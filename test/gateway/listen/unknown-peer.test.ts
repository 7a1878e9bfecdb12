/** Clients that reset their connection so early that the operating system no longer knows their address. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { GET } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { listen, reply } from './listener.js'
import { listenTls } from './tls-listener.js'

/** Sends a request and resets the connection at once. */
const HIT_AND_RUN = `
  const [port, text] = process.argv.slice(1)
  const socket = require('node:net').connect(Number(port), '127.0.0.1', () => {
    socket.write(text)
    socket.resetAndDestroy()
  })`

t.test('a request whose sender is unknown is never served: no rule could tell whose it is', async t => {
  const peers: string[] = []
  const { listener, port } = await listen(t, (req, res) => {
    peers.push(req.peer.address)
    reply(res)
  })
  // The test's event loop waits meanwhile, so the connection is reset before the listener accepts it.
  for (let i = 0; i < 3; i++) execFileSync(process.execPath, ['-e', HIT_AND_RUN, String(port), GET])
  await waitUntil('only the first client to stay', () => listener.connections === 1)
  await sleep(50)
  t.same(peers, [])
})

t.test('neither is one that follows a TLS handshake', async t => {
  if (!canMakeCertificates(t)) return
  const { listener, port, served } = await listenTls(t, makeCertificate(t.testdir(), 'one'))
  const wire = connect({ port, host: '127.0.0.1' })
  await once(wire, 'connect')
  // Once the handshake is complete here, the end of it and a request leave together with the reset.
  const flights: Buffer[] = []
  const held = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      flights.push(chunk)
      if (flights.length === 1) wire.write(chunk)
      done()
    },
  })
  wire.on('data', chunk => held.push(chunk)).on('error', () => {})
  const client = connectTls({ socket: held, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  client.on('error', () => {})
  await once(client, 'secureConnect')
  client.write(GET)
  await waitUntil('the request', () => flights.length > 2)
  wire.write(Buffer.concat(flights.slice(1)))
  wire.resetAndDestroy()
  await waitUntil('the end', () => listener.connections === 0)
  t.same(served, [])
})
