/** What http-proxy forwards, the gateway forwards: the same request to the upstream, the same response to the client. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'

// It calls functions that Node has deprecated.
process.noDeprecation = true
// It comes without types.
const proxies = createRequire(import.meta.url)('http-proxy') as {
  createProxyServer(options: { target: string }): { web(req: IncomingMessage, res: ServerResponse): void }
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer | undefined
  readonly isChunked: boolean
  readonly answer: Answered
}

interface Answered {
  readonly status: number
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: string
  readonly isChunked: boolean
}

/** Fields that each of the two writes in its own way: the hop's with its framing, the client's address, the gateway's. */
const OWN =
  /^(connection|keep-alive|content-length|transfer-encoding|date|via|forwarded|x-forwarded-.*|x-request-id|x-sluice-.*|ratelimit.*)$/

const name = fc.stringMatching(/^x-t-[a-z0-9!#$&'*+.^_`|~-]{1,12}$/)
const value = fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/)
const fields = fc.array(fc.tuple(name, value), { maxLength: 6 })
// http-proxy escapes apostrophes.
const segment = fc.stringMatching(/^[a-z0-9_~!$&()*+,;=:@-]{1,12}$/)
const path = fc
  .tuple(
    fc.array(segment, { minLength: 1, maxLength: 4 }),
    fc.stringMatching(/^(\?[a-z0-9_=&%/?:@!$()*+,;.-]{0,30})?$/),
  )
  .map(([segments, query]) => `/${segments.join('/')}${query}`)
const answer = fc.record({
  status: fc.constantFrom(200, 201, 204, 206, 301, 304, 400, 401, 404, 409, 410, 422, 500, 501, 503),
  fields,
  body: fc.string({ maxLength: 2000 }),
  isChunked: fc.boolean(),
})
const withoutBody = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'DELETE', 'OPTIONS'),
  body: fc.constant(undefined),
})
const withBody = fc.record({
  method: fc.constantFrom('POST', 'PUT', 'PATCH'),
  body: fc.uint8Array({ maxLength: 100_000 }).map(bytes => Buffer.from(bytes)),
})
const asked: fc.Arbitrary<Asked> = fc
  .tuple(fc.oneof(withoutBody, withBody), fc.record({ path, fields, isChunked: fc.boolean(), answer }))
  .map(([one, more]) => ({ ...one, ...more }))

/** Values by name in lower case, without the fields of the hop. http-proxy joins lines of one name, and reverses names. */
function fieldsOf(raw: readonly string[]): Record<string, string> {
  const values = new Map<string, string>()
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const before = values.get(name)
    if (!OWN.test(name)) values.set(name, before === undefined ? `${raw[i + 1]}` : `${before}, ${raw[i + 1]}`)
  }
  return Object.fromEntries([...values].sort())
}

async function read(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('base64')
}

/** Sends it; resolves to the response as the client sees it. */
async function ask(port: string, { method, path, fields, body, isChunked }: Asked): Promise<object> {
  const list = [['host', 'acme.localhost'], ...fields].flat()
  if (body !== undefined)
    list.push(...(isChunked ? ['transfer-encoding', 'chunked'] : ['content-length', `${body.length}`]))
  const sent = request({ host: '127.0.0.1', port, method, path, headers: list })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode, fields: fieldsOf(response.rawHeaders), body: await read(response) }
}

t.test('what http-proxy forwards, the gateway forwards', async t => {
  let planned: Answered | undefined
  let seen: object | undefined
  const upstream = await startApp(t, async (req, res) => {
    const { status, fields, body, isChunked } = planned as Answered
    seen = { method: req.method, url: req.url, fields: fieldsOf(req.rawHeaders), body: await read(req) }
    const isBare = req.method === 'HEAD' || status === 204 || status === 304
    const bytes = Buffer.from(isBare ? '' : body)
    res.writeHead(status, [
      ...fields.flat(),
      ...(isBare || isChunked ? [] : ['content-length', `${bytes.length}`]),
    ])
    res.end(bytes)
  })
  const gateway = await testGateway(t, { upstream })
  const proxy = proxies.createProxyServer({ target: upstream })
  const oracle = createServer((req, res) => proxy.web(req, res)).listen(0, '127.0.0.1')
  await once(oracle, 'listening')
  t.teardown(() => oracle.close().closeAllConnections())

  await fc.assert(
    fc.asyncProperty(asked, async request => {
      planned = request.answer
      const expected = [await ask(`${(oracle.address() as AddressInfo).port}`, request), seen]
      const found = [await ask(new URL(gateway.url).port, request), seen]
      t.same(found, expected)
      return JSON.stringify(found) === JSON.stringify(expected)
    }),
    { numRuns: 150, endOnFailure: true },
  )
})
