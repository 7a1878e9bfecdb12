/**
 * Mutated connections by the thousand against a gateway in a process of its own: it logs no error, leaves no connection
 * behind, holds little memory, and serves others. `npm run fuzz` is the long run.
 */
import { once } from 'node:events'
import { connect } from 'node:tls'
import t from 'tap'
import { canMakeCertificates, makeCertificate } from '../../../helpers/certificates.js'
import { gatewayProcess, isError, oneUpstream, writeConfig } from '../../../helpers/gateway-process.js'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { ask, openSession } from '../../listen/http2-scene.js'
import { startUpstream } from './hostile-scene.js'
import { dice, mutatedConnection } from './mutations.js'

const CONNECTIONS = Number(process.env.CONNECTIONS ?? 200)
const SEED = Number(process.env.SEED ?? 1)
const AT_ONCE = 20
/** Each address is a client with limits of its own. */
const ADDRESSES = 200
/** Node may not notice that a client is gone; then an idle connection ends after 65 s. */
const GONE_MS = 100_000
const MOST_MEMORY = 400 * 1024 * 1024

t.setTimeout(60_000 + CONNECTIONS * 30)

/** Sends one connection, and leaves after a moment whatever the gateway does. */
async function play(port: number, seed: number): Promise<void> {
  const roll = dice(seed)
  const localAddress = `127.0.1.${1 + (seed % ADDRESSES)}`
  const address = { port, host: '127.0.0.1', localAddress }
  const socket = connect({ ...address, ALPNProtocols: ['h2'], rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  if (roll(3) > 0) socket.resume()
  for (const piece of mutatedConnection(roll)) {
    if (socket.destroyed) return
    socket.write(piece)
    if (roll(4) === 0) await sleep(0)
  }
  await sleep(roll(30))
  if (roll(2) === 0) socket.destroy()
  else socket.resetAndDestroy()
}

if (canMakeCertificates(t)) {
  t.test(`${CONNECTIONS} mutated connections from seed ${SEED}`, async t => {
    const certificate = makeCertificate(t.testdir(), 'localhost')
    const upstream = await startUpstream(t, () => {})
    const tls = { cert: certificate.certFile, key: certificate.keyFile }
    const folder = writeConfig(t, { listen: { http2: 'own', tls }, ...oneUpstream(upstream) }, {})
    const gateway = await gatewayProcess(t, folder)
    const port = Number(new URL(gateway.url).port)
    const url = `https://127.0.0.1:${port}`
    const serve = async (): Promise<number | undefined> => {
      const session = await openSession(t, url, certificate)
      const { status } = await ask(session, {})
      session.destroy()
      return status
    }
    let most = 0
    for (let at = 0; at < CONNECTIONS; at += AT_ONCE) {
      const count = Math.min(AT_ONCE, CONNECTIONS - at)
      await Promise.allSettled(Array.from({ length: count }, (_, i) => play(port, SEED + at + i)))
      if (at % 1_000 !== 0) continue
      if ((await serve()) !== 200) throw new Error(`after the connections from seed ${SEED + at}: not served`)
      most = Math.max(most, await gateway.resident())
    }
    most = Math.max(most, await gateway.resident())
    t.equal(await serve(), 200)
    t.same(gateway.out().split('\n').filter(isError), [])
    t.ok(most < MOST_MEMORY, `${Math.round(most / 1024 / 1024)} MiB`)
    const areClosed = async () => {
      const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      return /^sluice_connections 0$/m.test(metrics)
    }
    // The short run does not wait so long.
    if (CONNECTIONS >= 1_000) await waitUntil('all connections to be closed', areClosed, GONE_MS)
  })
}
