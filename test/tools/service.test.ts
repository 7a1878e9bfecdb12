/** The directory and the identity service as processes of their own, and a gateway that names them by url. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { send } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

const SECRET = 'a-secret-of-the-gateway'
const API_KEY = 'test-key-0123456789'
const ADMIN_KEY = 'admin-key-0123456789'

interface Running {
  readonly url: string
  out(): string
  stop(): void
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>
}

/** Starts `sluice <name>` on a free port; it is stopped with the test. */
async function run(t: Test, name: string, env: Record<string, string>): Promise<Running> {
  const args = [inProject('dist', 'gateway', 'cli.js'), name, '--port', '0']
  const given = { PATH: process.env.PATH ?? '', DATA_DIR: t.testdir(), API_KEYS: API_KEY, ...env }
  const child = spawn(process.execPath, args, { env: given })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', text => {
      out += text
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const ready = () => new RegExp(`The ${name} service is ready on (http://[^\\s"]+)`).exec(out)?.[1]
  await waitUntil('the ready line', () => ready() ?? child.exitCode !== null, 60_000)
  return { url: ready() ?? '', out: () => out, stop: () => child.kill('SIGTERM'), ended }
}

const json = (headers: Record<string, string>, body: object) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

t.test('a gateway in front of both services by url behaves as with embedded ones', async t => {
  const env = { GATEWAY_SECRET: SECRET, IDENTITY_ADMIN_KEYS: ADMIN_KEY }
  const [directory, identity] = await Promise.all([run(t, 'directory', env), run(t, 'identity', env)])
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams:
  directory: { url: "${directory.url}", secret: "\${GATEWAY_SECRET}" }
  identity: { url: "${identity.url}", secret: "\${GATEWAY_SECRET}" }
  other: { url: "${identity.url}" }
routes:
  - { path: /api/**, upstream: directory }
  - { path: /**, upstream: identity }
  - { path: /admin/identities/none, upstream: other }
`,
    {},
  )
  const gateway = await gatewayProcess(t, folder, { GATEWAY_SECRET: SECRET })

  const fields = { name: 'Acme', tenant: 'acme', product: 'crm', type: 'okta-scim-v2' }
  const key = { authorization: `Api-Key ${API_KEY}` }
  const made = await fetch(`${gateway.url}/api/v1/directory-sync`, json(key, fields))
  const { scim } = ((await made.json()) as { data: { scim: { endpoint: string; secret: string } } }).data
  t.ok(scim.endpoint.startsWith(`${gateway.url}/`), 'addresses are those of the gateway')
  const user = await fetch(
    `${scim.endpoint}/Users`,
    json({ authorization: `Bearer ${scim.secret}` }, { userName: 'ada' }),
  )
  t.equal(user.status, 201)

  const traits = { email: 'ada@x.example', name: { first: 'Ada' } }
  const register = (headers: Record<string, string>) =>
    fetch(`${gateway.url}/self-service/registration`, json(headers, { traits }))
  t.equal((await register({})).status, 201)
  t.equal((await register({ 'x-sluice-project': 'other' })).status, 409, 'a client cannot choose the project')
  const asAcme = await send(`${gateway.url}/self-service/registration`, {
    method: 'POST',
    headers: { host: 'acme.localhost', 'content-type': 'application/json' },
    body: JSON.stringify({ traits }),
  })
  t.equal(asAcme.status, 201, 'the project that the gateway tells is believed')

  for (const { url } of [directory, identity]) {
    const forged = { 'x-sluice-project': 'acme', 'x-sluice-network': '1.2.3.4', 'x-sluice-secret': 'wrong' }
    for (const headers of [{}, forged, { ...forged, ...key }]) {
      const answer = await fetch(`${url}/api/v1/directory-sync?tenant=acme&product=crm`, { headers })
      t.equal(answer.status, 403, 'nobody but the gateway is answered')
    }
  }
  t.equal((await fetch(`${gateway.url}/admin/identities/none`)).status, 403, 'an upstream without the secret')
  for (const { out } of [directory, identity]) t.notMatch(out(), SECRET)
  t.notMatch(gateway.out(), SECRET)
})

t.test('without a gateway a service answers everybody, and believes nothing', async t => {
  const { url, out } = await run(t, 'identity', { IDENTITY_ADMIN_KEYS: ADMIN_KEY })
  t.match(out(), /GATEWAY_SECRET is not set: everybody who reaches this service is answered/)
  const register = (project: string) => {
    const traits = { email: 'ada@x.example', name: { first: 'Ada' } }
    return fetch(`${url}/self-service/registration`, json({ 'x-sluice-project': project }, { traits }))
  }
  t.equal((await register('one')).status, 201)
  t.equal((await register('two')).status, 409, 'both are the project "default"')
  const guesses = Array.from({ length: 25 }, (_, n) =>
    fetch(`${url}/admin/identities`, {
      headers: { authorization: `Api-Key wrong-${n}`, 'x-sluice-network': `10.0.${n}.0` },
    }),
  )
  const statuses = (await Promise.all(guesses)).map(({ status }) => status)
  t.ok(statuses.includes(429), 'a guesser cannot pose as many')
})

t.test('SIGTERM lets a running request finish', async t => {
  const service = await run(t, 'directory', {})
  const asked = request(`${service.url}/api/v1/directory-sync`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Api-Key ${API_KEY}`,
      expect: '100-continue',
    },
  })
  asked.flushHeaders()
  await once(asked, 'continue')
  service.stop()
  await waitUntil('draining', () => service.out().includes('Draining'))
  asked.end(JSON.stringify({ name: 'A', tenant: 'a', product: 'b', type: 'generic-scim-v2' }))
  const [answer] = await once(asked, 'response')
  answer.resume()
  t.equal(answer.statusCode, 201)
  t.equal(await service.ended, 0)
  t.match(service.out(), /Stopped/)
})

t.test('what keeps a service from starting is said in a sentence', async t => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  t.teardown(() => holder.close())
  const { port } = holder.address() as { port: number }
  const start = (name: string, env: Record<string, string>, ...more: string[]) =>
    new Promise<{ status: number | null; out: string }>(resolve => {
      const args = [inProject('dist', 'gateway', 'cli.js'), name, ...more]
      const given = { PATH: process.env.PATH ?? '', DATA_DIR: t.testdir(), ...env }
      const child = spawn(process.execPath, args, { env: given })
      let out = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', text => {
          out += text
        })
      }
      child.on('close', status => resolve({ status, out }))
    })
  const cases: [name: string, env: Record<string, string>, args: string[], sentence: RegExp][] = [
    [
      'directory',
      {},
      ['--port', String(port)],
      /^Port \d+ on 127\.0\.0\.1 is in use.* Choose another \(--port\)\.$/m,
    ],
    ['identity', {}, ['--host', '203.0.113.1'], /^--host: 203\.0\.113\.1 is no address of this machine\.$/m],
    [
      'directory',
      { MONGODB_URL: 'mysql://x' },
      [],
      /^The directory service cannot start: MONGODB_URL must begin/m,
    ],
    ['identity', { GATEWAY_SECRET: 'short' }, [], /^GATEWAY_SECRET must have 16 to 1024 characters/m],
    // The gateway's setting takes no longer one.
    [
      'identity',
      { GATEWAY_SECRET: 'x'.repeat(1025) },
      [],
      /^GATEWAY_SECRET must have 16 to 1024 characters/m,
    ],
  ]
  for (const [name, env, args, sentence] of cases) {
    const { status, out } = await start(name, env, ...args)
    t.equal(status, 1)
    t.match(out, sentence)
    t.notMatch(out, /^ +at /m, 'no stack')
  }
  for (const port of ['x', '70000', '-1']) {
    const { code, err } = await sluice(['directory', `--port=${port}`])
    t.equal(code, 2)
    t.match(err, /it must be a number from 0 to 65535/)
  }
})
