/**
 * What an identity provider, a person at a form and an operator see while the disk of the data folder is full or fails.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { failingDisk, smallDisk } from '../helpers/disks.js'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { waitUntil } from '../helpers/wait.js'
import { apiKey, okta, startReceiver } from './directory/harness.js'

t.jobs = 2

const gatewayYaml = `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { directory: { embedded: directory }, identity: { embedded: identity } }
routes: [{ path: /api/**, upstream: directory }, { path: /**, upstream: identity }]
`
const MiB = 1024 * 1024
const scimError = 'urn:ietf:params:scim:api:messages:2.0:Error'

interface Connection {
  readonly id: string
  readonly secret: string
}

/** A gateway with both services on that folder, and calls to it. */
async function running(t: Test, dataDir: string, more: Readonly<Record<string, string>> = {}) {
  const folder = writeConfig(t, gatewayYaml, {})
  const hooks = { WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_ALLOW_HTTP: 'true' }
  const env = { API_KEYS: apiKey, DATA_DIR: dataDir, IDENTITY_ADMIN_KEYS: apiKey, ...hooks }
  const gateway = await gatewayProcess(t, folder, { ...env, ...more })
  const call = async (method: string, path: string, authorization: string, body?: object) => {
    const headers = { authorization, 'x-forwarded-for': '', 'content-type': 'application/json' }
    const request = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await fetch(`${gateway.url}${path}`, request)
    const text = await answer.text()
    const { status, headers: fields } = answer
    return { status, retryAfter: fields.get('retry-after'), body: text === '' ? {} : JSON.parse(text) }
  }
  return {
    gateway,
    manage: (method: string, path: string, body?: object) =>
      call(method, `/api/v1/directory-sync${path}`, `Api-Key ${apiKey}`, body),
    scim: ({ id, secret }: Connection, method: string, path: string, body?: object) =>
      call(method, `/api/scim/v2.0/${id}${path}`, `Bearer ${secret}`, body),
    register: (email: string) =>
      call('POST', '/admin/identities', `Bearer ${apiKey}`, {
        traits: { email, name: { first: 'Ann', last: 'Bee' } },
      }),
  }
}
type Running = Awaited<ReturnType<typeof running>>

/** The same with a directory, and a receiver of its events. */
async function connected(t: Test, dataDir: string, more: Readonly<Record<string, string>> = {}) {
  const receiver = await startReceiver(t)
  const service = await running(t, dataDir, more)
  const hook = { webhook_url: receiver.url, webhook_secret: 'hush-hush' }
  const { body } = await service.manage('POST', '', { tenant: 'acme', product: 'app', ...hook })
  const to: Connection = { id: body.data.id, secret: body.data.scim.secret }
  return { service, gateway: service.gateway, receiver, to }
}

const readiness = async ({ adminUrl }: GatewayProcess) => {
  const answer = await fetch(`${adminUrl}/readyz`)
  return { status: answer.status, body: (await answer.json()) as { status: string; detail?: string } }
}
const recovery = (gateway: GatewayProcess) =>
  waitUntil('recovery by itself', async () => (await readiness(gateway)).body.status === 'ready', 30_000)
const metric = async ({ adminUrl }: GatewayProcess, series: string) => {
  const line = (await (await fetch(`${adminUrl}/metrics`)).text())
    .split('\n')
    .find(each => each.startsWith(`${series} `))
  return Number(line?.split(' ')[1])
}
const padding = 'x'.repeat(20_000)

/** Creates users until one is refused; returns the names of those that got a 201, and the refusal. */
async function writeOn(service: Running, to: Connection, prefix: string, most = 2000) {
  const kept: string[] = []
  for (let i = 0; i < most; i++) {
    const name = `${prefix}-${i}`
    const answer = await service.scim(to, 'POST', '/Users', okta(name, { title: padding }))
    if (answer.status !== 201) return { kept, refusal: answer }
    kept.push(name)
  }
  return { kept, refusal: undefined }
}

/** Asserts that exactly the users that got a 201 exist, and that the receiver got the event of each, in order. */
async function isWhole(
  t: Test,
  service: Running,
  { id }: Connection,
  kept: readonly string[],
  calls: readonly { readonly event: { readonly id: string; readonly sequence: number } }[],
): Promise<void> {
  const names: string[] = []
  for (let offset = 0, more = true; more; offset += 100) {
    const { body } = await service.manage(
      'GET',
      `/users?directoryId=${id}&pageOffset=${offset}&pageLimit=100`,
    )
    names.push(...body.data.map((user: { raw: { userName: string } }) => user.raw.userName))
    more = body.data.length > 0
  }
  t.same(
    kept.filter(name => !names.includes(name)),
    [],
    'no user that was confirmed with 201 is lost',
  )
  t.equal(new Set(names).size, names.length, 'no user is stored twice')
  const told = () => new Set(calls.map(({ event }) => event.sequence))
  await waitUntil('the events of all users', () => told().size >= names.length, 60_000)
  t.same(
    [...told()].sort((a, b) => a - b),
    names.map((_, index) => index + 1),
    'each user has exactly one event',
  )
}

t.test('on a full disk writes get 503 until there is room, and no confirmed write is lost', async t => {
  const disk = smallDisk(t, 12 * MiB)
  if (!disk) return
  const { service, gateway, receiver, to } = await connected(t, disk.folder)
  t.equal((await service.register('ann@x.example')).status, 201)
  t.same(await readiness(gateway), { status: 200, body: { status: 'ready' } })

  disk.fill(300_000)
  const { kept, refusal } = await writeOn(service, to, 'before')
  t.match(refusal, {
    status: 503,
    retryAfter: '1',
    body: { schemas: [scimError], status: '503', detail: /no room left/ },
  })
  for (let i = 0; i < 20; i++)
    await service.scim(to, 'POST', '/Users', okta(`again-${i}`, { title: padding }))
  t.match(await readiness(gateway), {
    status: 200,
    body: { status: 'degraded', detail: /directory database has no room left/ },
  })
  t.ok((await metric(gateway, 'directory_store_errors_total{fault="full"}')) >= 1)
  t.equal(await metric(gateway, 'directory_store_degraded'), 1)
  t.equal((await service.scim(to, 'GET', '/Users?count=1')).status, 200, 'stored users can still be read')
  let identity = await service.register('bea-0@x.example')
  for (let i = 1; i < 200 && identity.status === 201; i++)
    identity = await service.register(`bea-${i}@x.example`)
  t.match(identity, { status: 503, retryAfter: '5', body: { errors: [{ code: 'store_unavailable' }] } })
  const lines = gateway.out().match(/database has no room left/g)?.length ?? 0
  t.ok(lines >= 1 && lines <= 4, `all refusals together log ${lines} lines`)
  t.notMatch(gateway.out(), /request failed|delivery was interrupted/)

  disk.free()
  await recovery(gateway)
  const after = await writeOn(service, to, 'after', 10)
  t.equal(after.refusal, undefined)
  t.equal((await service.register('cleo@x.example')).status, 201)

  disk.fill(100_000)
  const last = await writeOn(service, to, 'last')
  t.equal(last.refusal?.status, 503)
  await gateway.kill()
  disk.free()
  const next = await running(t, disk.folder)
  await isWhole(t, next, to, [...kept, ...after.kept, ...last.kept], receiver.calls)
  t.equal((await next.register('ann@x.example')).status, 409, 'identities are kept too')
})

for (const [call, errno, name] of [
  ['fsync', 5, 'EIO'],
  ['write', 5, 'EIO'],
  ['write', 28, 'ENOSPC'],
] as const) {
  t.test(
    `while a disk fails to ${call} (${name}) writes get 503, and no confirmed write is lost`,
    async t => {
      const disk = failingDisk(t, 'directory.db')
      if (!disk) return
      const dataDir = t.testdir()
      const { service, gateway, receiver, to } = await connected(t, dataDir, disk.env)
      const before = await writeOn(service, to, 'before', 10)
      t.equal(before.refusal, undefined)

      disk.fail(call, errno)
      const during = await writeOn(service, to, 'during')
      t.match(during.refusal, { status: 503, retryAfter: '1', body: { schemas: [scimError] } })
      t.match(await readiness(gateway), { body: { status: 'degraded' } })
      disk.heal()
      await recovery(gateway)
      const after = await writeOn(service, to, 'after', 10)
      t.equal(after.refusal, undefined)

      disk.fail(call, errno)
      const last = await writeOn(service, to, 'last')
      t.equal(last.refusal?.status, 503)
      await sleep(1200)
      await gateway.kill()
      disk.heal()
      const next = await running(t, dataDir, disk.env)
      const kept = [before, during, after, last].flatMap(each => each.kept)
      await isWhole(t, next, to, kept, receiver.calls)
    },
  )
}
