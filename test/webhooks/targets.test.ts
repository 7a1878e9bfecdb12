/** Where webhook calls really go, over real connections: DNS rebinding, redirects, http, ports. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { open } from '../../services/directory/index.js'
import { createPoster } from '../../webhooks/post.js'
import { isPublicAddress, type ResolveHost, refusedTarget } from '../../webhooks/target.js'
import { startService } from '../services/directory/harness.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const rules = { allowPrivate: true, allowHttp: true }

/** A server that counts its calls, on its own address; it does not keep connections alive. */
async function counting(t: Test, host: string, port = 0, location?: string) {
  let calls = 0
  const server = createServer((request, response) => {
    calls++
    request.resume()
    response.writeHead(location ? 307 : 204, { connection: 'close', ...(location && { location }) }).end()
  })
  await new Promise<void>(resolve => server.listen(port, host, resolve))
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, calls: () => calls }
}

/** A name resolver that gives these answers in order, then the last one forever. */
function rebinding(...answers: string[]): ResolveHost & { asked(): number } {
  let asked = 0
  const resolve: ResolveHost = (_hostname, _options, callback) => {
    const address = answers[Math.min(asked++, answers.length - 1)] ?? ''
    callback(null, [{ address, family: 4 }])
  }
  return Object.assign(resolve, { asked: () => asked })
}

t.test('a name that always means this host is refused when it is set', async t => {
  const strict = { allowPrivate: false, allowHttp: false }
  for (const host of ['localhost', 'LocalHost', 'localhost.', 'a.localhost', 'a.b.localhost.'])
    t.match(refusedTarget(new URL(`https://${host}:18999/x`), strict), /is not a public address/, host)
  for (const host of ['localhost.example', 'mylocalhost', 'hooks.example'])
    t.equal(refusedTarget(new URL(`https://${host}/`), strict), undefined, host)
  t.equal(
    refusedTarget(new URL('http://localhost:3000/'), { allowPrivate: true, allowHttp: false }),
    undefined,
  )
})

t.test(
  'a connection goes to the address that was checked, even if the name resolves differently next',
  async t => {
    const outside = await counting(t, '127.0.0.1')
    const inside = await counting(t, '127.0.0.2', outside.port)
    const names = rebinding('127.0.0.1', '127.0.0.2')
    const poster = createPoster(rules, names)
    t.teardown(() => poster.close())
    t.equal(await poster.post(`http://hook.example:${outside.port}/`, '{}', {}), 204)
    t.equal(names.asked(), 1, 'the name is resolved once for check and connection')
    t.same([outside.calls(), inside.calls()], [1, 0])
  },
)

t.test('a name that resolves to a private address is refused when connecting', async t => {
  const receiver = await counting(t, '127.0.0.1')
  const poster = createPoster({ allowPrivate: false, allowHttp: true }, rebinding('127.0.0.1'))
  t.teardown(() => poster.close())
  await t.rejects(poster.post(`http://hook.example:${receiver.port}/`, '{}', {}), /not a public address/)
  t.equal(receiver.calls(), 0)
})

t.test('a name is refused when one of its addresses is private', async t => {
  const receiver = await counting(t, '127.0.0.1')
  const both: ResolveHost = (_hostname, _options, callback) =>
    callback(
      null,
      ['93.184.216.34', '127.0.0.1'].map(address => ({ address, family: 4 })),
    )
  const poster = createPoster({ allowPrivate: false, allowHttp: true }, both)
  t.teardown(() => poster.close())
  await t.rejects(poster.post(`http://hook.example:${receiver.port}/`, '{}', {}), /not a public address/)
  t.equal(receiver.calls(), 0)
})

t.test('a call repeated on a new connection keeps its first deadline', async t => {
  const deadlines: AbortController[] = []
  t.intercept(AbortSignal, 'timeout', {
    value: () => {
      const deadline = new AbortController()
      deadlines.push(deadline)
      return deadline.signal
    },
  })
  let calls = 0
  const server = createServer((request, response) => {
    calls += 1
    if (calls === 1) response.writeHead(204).end()
    if (calls === 2) request.socket.destroy()
    if (calls < 3) return
    deadlines[1]?.abort(new DOMException('late', 'TimeoutError'))
    setTimeout(() => response.writeHead(204).end(), 100)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const poster = createPoster(rules)
  t.teardown(() => poster.close())
  t.equal(await poster.post(url, '{}', {}), 204)
  await t.rejects(poster.post(url, '{}', {}), /no answer within 15000 ms/)
  t.equal(calls, 3)
})

t.test('a redirect is returned and not followed', async t => {
  const inside = await counting(t, '127.0.0.2')
  const receiver = await counting(t, '127.0.0.1', 0, `http://127.0.0.2:${inside.port}/`)
  const poster = createPoster(rules)
  t.teardown(() => poster.close())
  t.equal(await poster.post(`http://127.0.0.1:${receiver.port}/`, '{}', {}), 307)
  t.same([receiver.calls(), inside.calls()], [1, 0])
})

t.test(
  'http is allowed to private addresses if these are allowed, and elsewhere only if http is',
  async t => {
    const receiver = await counting(t, '127.0.0.1')
    const inner = createPoster(
      { allowPrivate: true, allowHttp: false },
      rebinding('127.0.0.1', '93.184.216.34'),
    )
    t.teardown(() => inner.close())
    const url = `http://hook.example:${receiver.port}/`
    t.equal(await inner.post(url, '{}', {}), 204, 'a call over http to this machine succeeds')
    await t.rejects(inner.post(url, '{}', {}), /http is not encrypted/)
    const strict = createPoster({ allowPrivate: false, allowHttp: false }, rebinding('93.184.216.34'))
    await t.rejects(strict.post(url, '{}', {}), /http is not encrypted/)
    t.equal(receiver.calls(), 1)
  },
)

t.test('the ports of other protocols are refused, whatever is allowed', async t => {
  t.ok(isPublicAddress('93.184.216.34'))
  for (const port of [1, 22, 25, 81, 1023, 2049, 6000, 6379, 10080, 11211, 27017]) {
    t.match(refusedTarget(new URL(`https://hook.example:${port}/`), rules), /is not allowed/, String(port))
  }
  for (const port of [80, 443, 1024, 3000, 8080, 8443, 65535]) {
    t.equal(refusedTarget(new URL(`https://hook.example:${port}/`), rules), undefined, String(port))
  }
})

t.test('an address of this machine or its network is refused when it is set, by every way', async t => {
  const service = await startService(t)
  const { data } = (await service.manage('POST', '', { tenant: 't', product: 'p' })).body
  const secret = 'hush-hush'
  const hosts = [
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    '127.1',
    '0x7f000001',
    '10.0.0.1',
    '[::1]',
    '[fe80::1]',
  ]
  for (const url of hosts.map(host => `https://${host}/hook`)) {
    const hook = { webhook_url: url, webhook_secret: secret }
    const answers = [
      await service.manage('POST', '', { tenant: 't', product: 'q', ...hook }),
      await service.manage('PATCH', `/${data.id}`, hook),
      await service.manage('POST', `/${data.id}/webhooks`, { endpoint: url, secret }),
    ]
    for (const { status, body } of answers) {
      t.equal(status, 400, url)
      t.match(body.error.message, 'is not a public address', url)
    }
  }
  const library = await open({ env: { DATA_DIR: t.testdir() }, log: quiet })
  t.teardown(() => library.close())
  const hook = { webhook_url: 'https://localhost/hook', webhook_secret: secret }
  const made = await library.directories.create({ tenant: 't', product: 'p' })
  for (const answer of [
    await library.directories.create({ tenant: 't', product: 'q', ...hook }),
    await library.directories.update(made.data?.id as string, hook),
  ])
    t.match(answer.error, { code: 400, message: /localhost is not a public address/ })
})
