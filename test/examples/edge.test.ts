/** The example of a gateway at the edge, driven by all who use it: browsers, customers, partners, an authority. */
import { cpSync } from 'node:fs'
import { request } from 'node:https'
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { ISSUER, newKey, startIssuer, token } from '../gateway/identify/jwt/issuer.js'
import { sluice } from '../helpers/command.js'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { startPebble } from '../helpers/pebble.js'
import { inProject } from '../helpers/root.js'
import { temporaryFolder } from '../helpers/scope.js'
import { waitUntil } from '../helpers/wait.js'

const API = 'api.acme.test'
const SHOP = 'shop.acme.test'
const CREATE = '/orders.v1.Orders/Create'
const WAIT_MS = 60_000
const bytes = (message: Buffer): Buffer => message

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** A service of gRPC that returns what it gets. */
async function startOrders(t: Test): Promise<string> {
  const server = new Server()
  const Create = {
    ...{ path: CREATE, requestStream: false, responseStream: false },
    ...{
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    },
  }
  server.addService(
    { Create },
    {
      Create: (call: { request: Buffer }, answer: (error: null, value: Buffer) => void) =>
        answer(null, call.request),
    },
  )
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, at) =>
      error === null ? resolve(at) : reject(error),
    ),
  )
  t.teardown(() => server.forceShutdown())
  return `http://127.0.0.1:${port}`
}

/** An address of the API, which tells what it was asked. */
const startApi = (t: Test, name: string, state: { healthy: boolean }) =>
  startApp(t, (req, res) => {
    if (req.url === '/healthz') res.writeHead(state.healthy ? 200 : 500).end()
    else {
      res.setHeader('server', 'api')
      req
        .resume()
        .on('end', () =>
          res.end(
            [name, req.method, req.url, req.headers['x-customer'], req.headers['x-partner-key']].join(' '),
          ),
        )
    }
  })

t.test('everybody is served at the edge', async t => {
  const pebble = await startPebble(t)
  if (pebble === undefined) return
  const folder = temporaryFolder(t, 'edge')
  cpSync(inProject('examples', 'edge'), folder, { recursive: true })
  const key = await newKey('one')
  const issuer = await startIssuer(t, [key])
  const second = { healthy: true }
  const shop = await startApp(t, (req, res) => res.end(`shop ${req.url} ${req.headers['x-sluice-project']}`))
  const gateway = await gatewayProcess(t, folder, {
    ...{ LISTEN_HOST: '127.0.0.1', PORT: String(pebble.tlsPort), HTTP_PORT: String(pebble.httpPort) },
    ...{ ACME_DIRECTORY: pebble.directory, ACME_CA: pebble.ca, ADMIN_PORT: '0' },
    ...{
      ISSUER,
      JWKS: issuer.url,
      JWKS_IS_PRIVATE: 'true',
      SHOP_URL: shop,
      ORDERS_URL: await startOrders(t),
    },
    ...{
      API_URL: await startApi(t, 'one', { healthy: true }),
      API_URL_2: await startApi(t, 'two', second),
      CHECK_EVERY: '1s',
    },
  })
  const ca = await pebble.root()

  const ask = (
    host: string,
    path: string,
    method = 'GET',
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ) =>
    new Promise<Answer>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: pebble.tlsPort, servername: host, ca, agent: false as const }
      const req = request({ ...options, path, method, headers: { host, ...headers } }, async res => {
        let text = ''
        for await (const chunk of res) text += chunk
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text })
      })
      req.once('error', reject).end(body)
    })
  await waitUntil(
    'certificates for both hosts',
    async () => {
      const all = await Promise.all(
        [ask(API, '/healthz'), ask(SHOP, '/')].map(one => one.catch(() => undefined)),
      )
      return all.every(one => one?.status === 200)
    },
    WAIT_MS,
  )

  const bearer = async (claims: object) => ({
    authorization: `Bearer ${await token(key, { audience: 'orders-api', claims: { plan: 'scale', ...claims } })}`,
  })
  const acme = await bearer({ azp: 'acme' })

  t.test('plain HTTP leads to TLS', async t => {
    const answer = await send(`http://127.0.0.1:${pebble.httpPort}/cart?x`, { headers: { host: SHOP } })
    t.equal(answer.status, 308)
    t.match(answer.headers.location, /^https:\/\/shop\.acme\.test(:\d+)?\/cart\?x$/)
  })

  t.test('visitors get the shop, whose limits they share, and are led on from what has moved', async t => {
    const page = await ask(SHOP, '/cart')
    t.match(page, {
      status: 200,
      body: 'shop /cart shop',
      headers: { 'strict-transport-security': 'max-age=31536000' },
    })
    t.match(await ask(SHOP, '/docs/a?b'), {
      status: 302,
      headers: { location: `https://${API}/v1/docs/a?b` },
    })
  })

  t.test(
    'customers are known by their tokens, and the API sees neither the prefix nor the name of its server',
    async t => {
      t.match(await ask(API, '/v1/things?q'), { status: 401, headers: { 'www-authenticate': String } })
      const { status: code, body, headers } = await ask(API, '/v1/things?q', 'GET', acme)
      t.match([code, body], [200, /^(one|two) GET \/things\?q acme $/])
      t.equal(headers.server, undefined)
      t.match(headers['x-ratelimit-limit'], /\b50\b/, 'the plan in the token')
      t.equal((await ask(API, '/v1/reports/may', 'GET', acme)).status, 403)
      t.equal(
        (await ask(API, '/v1/reports/may', 'GET', await bearer({ azp: 'acme', scope: 'reports' }))).status,
        200,
      )
      t.equal((await ask(API, '/v1/uploads', 'POST', { ...acme, 'content-length': '10485761' })).status, 413)
      t.equal((await ask(API, '/other', 'GET', acme)).status, 404)
    },
  )

  t.test('partners are known by their keys, which the API does not get', async t => {
    const added = await sluice(['keys', 'add', '--config', folder, '--project', 'parcels', '--name', 'ci'])
    const partner = { 'x-partner-key': added.out.trim() }
    await waitUntil(
      'the key',
      async () => (await ask(API, '/v1/parcels', 'GET', partner)).status === 200,
      10_000,
    )
    t.match((await ask(API, '/v1/parcels', 'GET', partner)).body, /\/parcels parcels $/)
  })

  t.test('pages of the shop may call the API, and no others', async t => {
    const preflight = (origin: string) =>
      ask(API, '/v1/things', 'OPTIONS', {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      })
    t.match(await preflight(`https://${SHOP}`), {
      status: 204,
      headers: {
        'access-control-allow-origin': `https://${SHOP}`,
        'access-control-allow-headers': /authorization/,
      },
    })
    t.equal((await preflight('https://evil.test')).headers['access-control-allow-origin'], undefined)
    const refused = await ask(API, '/v1/things', 'POST', { origin: `https://${SHOP}` })
    t.match(refused, { status: 401, headers: { 'access-control-allow-origin': `https://${SHOP}` } })
  })

  t.test('calls of gRPC pass, and their limit is one of gRPC', async t => {
    const client = new Client(`127.0.0.1:${pebble.tlsPort}`, credentials.createSsl(Buffer.from(ca)), {
      ...{ 'grpc.ssl_target_name_override': API, 'grpc.default_authority': API },
    })
    t.teardown(() => client.close())
    const create = async (headers: Readonly<Record<string, string>>) => {
      const metadata = new Metadata()
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
      return new Promise<[ServiceError | null, Buffer | undefined]>(resolve => {
        client.makeUnaryRequest(CREATE, bytes, bytes, Buffer.from('two'), metadata, (error, value) =>
          resolve([error, value]),
        )
      })
    }
    t.equal((await create(acme))[1]?.toString(), 'two')
    t.equal((await create({}))[0]?.code, status.UNAUTHENTICATED)
    const small = await bearer({ azp: 'small', plan: 'developer' })
    const codes = []
    for (let i = 0; i < 3; i++) codes.push((await create(small))[0]?.code)
    t.same(codes, [undefined, undefined, status.RESOURCE_EXHAUSTED])
  })

  t.test('an address of the API that fails its checks gets no requests', async t => {
    second.healthy = false
    const answered = async () => {
      const all = await Promise.all(Array.from({ length: 6 }, () => ask(API, '/v1/x', 'GET', acme)))
      return [...new Set(all.map(({ body }) => body.split(' ')[0]))].join()
    }
    await waitUntil('only the other answers', async () => (await answered()) === 'one', 15_000)
    t.match((await send(`${gateway.adminUrl}/state`)).body, /"unhealthy|healthy":false/)
    second.healthy = true
    await waitUntil('both answer', async () => (await answered()).length > 3, 15_000)
  })
})
