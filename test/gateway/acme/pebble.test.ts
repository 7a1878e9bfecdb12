/** Certificates from a real authority, as clients see them. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { type Pebble, startPebble } from '../../helpers/pebble.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisUrl } from '../../helpers/redis.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { waitUntil } from '../../helpers/wait.js'
import { replaceWorker } from '../run/workers.js'

const DOMAINS = ['api.acme.test', 'shop.test']
const WAIT_MS = 60_000

/** `sluice serve` with a certificate of this authority. */
async function start(
  t: Test,
  pebble: Pebble,
  listen: object = {},
  settings: object = {},
  folder = 'certificates',
  domains = DOMAINS,
) {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const { directory, ca, tlsPort } = pebble
  const acme = { domains, email: 'ops@acme.test', directory, ca, folder }
  const config = writeConfig(
    t,
    {
      listen: { port: tlsPort, tls: { acme }, ...listen },
      upstreams: { app: { url: upstream } },
      routes: [{ path: '/**', upstream: 'app' }],
      ...settings,
    },
    { 'limits.yaml': oneBucket(10_000) },
  )
  return { config, gateway: await gatewayProcess(t, config) }
}

/** The serial number of the certificate for a name, which must lead to the root; or the code of the error. */
function serial(port: number, servername: string, ca: string): Promise<string> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1', servername, ca })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
  })
}

const SERIAL = /^[0-9A-F]{10,}$/

async function issued(port: number, ca: string): Promise<string> {
  return waitUntil(
    'a certificate',
    async () => {
      const found = await serial(port, 'shop.test', ca)
      return SERIAL.test(found) && found
    },
    WAIT_MS,
  )
}

interface State {
  readonly certificate: {
    readonly domains: readonly string[]
    readonly expires: string | null
    readonly failure: string | null
  }
}

t.test('one certificate for all domains is ordered by TLS-ALPN-01 and served', async t => {
  const pebble = await startPebble(t)
  if (pebble === undefined) return
  const { gateway, config } = await start(t, pebble)
  const ca = await pebble.root()
  const first = await issued(pebble.tlsPort, ca)
  t.equal(await serial(pebble.tlsPort, 'api.acme.test', ca), first)
  const { certificate } = (await send(`${gateway.adminUrl}/state`)).json<State & Record<string, unknown>>()
  t.match(certificate, { domains: DOMAINS, failure: null, expires: String })
  t.match(
    (await send(`${gateway.adminUrl}/metrics`)).body,
    /^sluice_certificate_expires_timestamp_seconds\{domain="shop.test"\} \d{10}/m,
  )
  const folder = join(config, 'certificates')
  for (const name of readdirSync(folder).filter(name => /\.(key|pem)$/.test(name)))
    t.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)
  t.same(readdirSync(join(folder, 'challenges')), [])
  t.same(readdirSync(folder).length, 3, 'the account, the certificate, no challenges, no lock')
})

t.test(
  'workers serve it too, also those that start later, and HTTP-01 is answered where plain HTTP is',
  async t => {
    const redis = await redisUrl(t)
    const pebble = await startPebble(t)
    if (redis === undefined || pebble === undefined) return
    const listen = { workers: 2, redirectHttp: pebble.httpPort }
    const { gateway } = await start(t, pebble, listen, { redis })
    const ca = await pebble.root()
    const first = await issued(pebble.tlsPort, ca)
    const serials = () =>
      Promise.all(Array.from({ length: 16 }, () => serial(pebble.tlsPort, 'shop.test', ca)))
    await waitUntil('both workers', async () => (await serials()).every(one => one === first), WAIT_MS)
    t.match((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).body, /"loaded"/)
    t.same([...new Set(await serials())], [first], 'a reload changes nothing')
    await replaceWorker(gateway)
    await replaceWorker(gateway)
    t.same([...new Set(await serials())], [first], 'no worker of before is left')
    const plain = { headers: { host: 'shop.test' }, agent: false } as const
    const { status, headers } = await send(`http://127.0.0.1:${pebble.httpPort}/a?b`, plain)
    t.same([status, headers.location], [308, 'https://shop.test/a?b'])
  },
)

t.test('a certificate is renewed in time, and the old one serves while the authority is away', async t => {
  const pebble = await startPebble(t, { lifetime: 20 })
  if (pebble === undefined) return
  const { gateway } = await start(t, pebble)
  const root = await pebble.root()
  const first = await issued(pebble.tlsPort, root)
  await waitUntil(
    'the renewal',
    async () => {
      const now = await serial(pebble.tlsPort, 'shop.test', root)
      if (!SERIAL.test(now)) t.fail(`between two certificates: ${now}`)
      return now !== first
    },
    WAIT_MS,
  )
  const second = await serial(pebble.tlsPort, 'shop.test', root)
  await pebble.kill()
  await waitUntil('a renewal that fails', () => /previous one stays in use/.test(gateway.out()), WAIT_MS)
  t.equal(await serial(pebble.tlsPort, 'shop.test', root), second)
  const { certificate } = (await send(`${gateway.adminUrl}/state`)).json<State>()
  t.match(certificate.failure, /ECONNREFUSED/)
})

t.test('a challenge of one gateway is answered by another that shares its folder', async t => {
  const pebble = await startPebble(t)
  if (pebble === undefined) return
  const folder = temporaryFolder(t, 'certificates')
  await start(t, pebble, {}, {}, folder)
  const root = await pebble.root()
  await issued(pebble.tlsPort, root)
  // The authority cannot reach this one: its port is none that it looks at.
  const { gateway } = await start(t, pebble, { port: 0 }, {}, folder, ['pay.acme.test'])
  const port = Number(new URL(gateway.url).port)
  await waitUntil(
    'its certificate',
    async () => SERIAL.test(await serial(port, 'pay.acme.test', root)),
    WAIT_MS,
  )
})
