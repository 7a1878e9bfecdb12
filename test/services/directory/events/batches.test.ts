import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { toMessages } from '../../../../services/directory/events/message.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import {
  hooked,
  hookSecret,
  okta,
  patchOp,
  type Received,
  type Service,
  sequences,
  startReceiver,
  startService,
  writeUsers,
} from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'
const processEvents = (service: Service) => service.manage('POST', '/cron/process-events')

t.test('batch mode: events wait for a run, which sends them in arrays per directory', async t => {
  const [good, bad] = [await startReceiver(t), await startReceiver(t, call => (call === 0 ? 500 : 200))]
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, DSYNC_WEBHOOK_BATCH_SIZE: '3' })
  const failing = await hooked(service, bad.url)
  const working = await hooked(service, good.url)
  await writeUsers(failing, ['x', 'y'])
  await writeUsers(working, ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  await service.manage('PATCH', `/${working.id}`, { name: 'Renamed' })
  await sleep(200)
  t.equal(good.calls.length + bad.calls.length, 0, 'no event is sent before a run')
  t.match(await processEvents(service), {
    status: 200,
    body: { data: { message: 'Processing started' }, error: null },
  })
  await waitUntil('all batches', () => good.calls.length === 3)
  t.same(
    good.calls.map(call => call.event.map((event: { sequence: number }) => event.sequence)),
    [[1, 2, 3], [4, 5, 6], [7]],
  )
  const [call] = good.calls as [Received]
  const signed = `${call.headers['webhook-id']}.${call.headers['webhook-timestamp']}.${call.text}`
  const signature = createHmac('sha256', hookSecret).update(signed).digest('base64')
  t.equal(call.headers['webhook-signature'], `v1,${signature}`)
  await waitUntil('the failed batch, sent again by itself', () => bad.calls.length === 2)
  t.equal(bad.calls[0]?.text, bad.calls[1]?.text)
  t.equal(bad.calls[0]?.headers['webhook-id'], bad.calls[1]?.headers['webhook-id'])
  await processEvents(service)
  await sleep(100)
  t.equal(good.calls.length, 3, 'a run without events sends nothing')
  t.match(await service.manage('GET', '/cron/process-events'), { status: 405 })
})

t.test('batch mode: with an interval the runs start by themselves', async t => {
  const receiver = await startReceiver(t)
  const env = { DSYNC_WEBHOOK_BATCH_SIZE: '10', DSYNC_WEBHOOK_BATCH_CRON_INTERVAL: '1' }
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, ...env })
  await writeUsers(await hooked(service, receiver.url), ['a', 'b'])
  await waitUntil('the run', () => receiver.calls.length > 0)
  t.same(sequences(receiver.calls), [1, 2])
})

t.test('a batch is bounded in its number of events and in its bytes', async t => {
  const event = (sequence: number, bytes: number) => {
    const body = JSON.stringify('x'.repeat(bytes))
    return { id: `evt_${sequence}`, sequence, created: '2026-01-01T00:00:00.000Z', body }
  }
  const sizes = [10, 10, 200_000, 100_000, 400_000, 10]
  const messages = toMessages(
    sizes.map((bytes, index) => event(index + 1, bytes)),
    2,
  )
  t.same(
    messages.map(message => message.events.map(({ sequence }) => sequence)),
    [[1, 2], [3], [4], [5], [6]],
  )
  t.equal(JSON.parse(messages[0]?.body ?? '').length, 2)
  t.equal(new Set(messages.map(message => message.id)).size, 5)
})

t.test('an invalid setting is refused with the name of its variable', async t => {
  for (const [name, value] of [
    ['DSYNC_WEBHOOK_BATCH_SIZE', 'many'],
    ['DSYNC_WEBHOOK_BATCH_SIZE', '1001'],
    ['DSYNC_WEBHOOK_BATCH_CRON_INTERVAL', '1h'],
    ['DSYNC_WEBHOOK_LOGS_TTL', '30'],
    ['DSYNC_WEBHOOK_LOGS_TTL', '0d'],
  ] as const) {
    await t.rejects(startService(t, { [name]: value }), { message: new RegExp(`^${name} must be`) }, value)
  }
})

t.test('MongoDB: several processes share the work and lose no update', async t => {
  const MONGODB_URL = await mongoUrl(t)
  if (MONGODB_URL === undefined) return
  t.setTimeout(60_000)
  const receiver = await startReceiver(t)
  const DATA_DIR = t.testdir()
  const env = { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL, DATA_DIR, DSYNC_WEBHOOK_BATCH_SIZE: '10' }
  const services = [await startService(t, env), await startService(t, env)] as const
  const { id, secret: token, tenant, product } = await hooked(services[0], receiver.url)
  const scim = (turn: number, method: string, path: string, body: object) =>
    (services[turn % 2] ?? services[0]).call(method, `/api/scim/v2.0/${id}${path}`, body, {
      authorization: `Bearer ${token}`,
    })
  const numbers = Array.from({ length: 50 }, (_, n) => n)
  const ids: string[] = []
  for (const n of numbers) ids.push((await scim(n, 'POST', '/Users', okta(`u${n}`))).body.id)
  const group = (await scim(0, 'POST', '/Groups', { displayName: 'All' })).body.id

  const onGroup = numbers.map(n => {
    const op = { op: 'add', path: 'members', value: [{ value: ids[n] }] }
    return scim(n, 'PATCH', `/Groups/${group}`, patchOp(op))
  })
  t.same(new Set((await Promise.all(onGroup)).map(({ status }) => status)), new Set([200]))
  const onUser = numbers.map(n => {
    const op = { op: 'add', path: 'roles', value: [{ value: `role-${n}` }] }
    return scim(n, 'PATCH', `/Users/${ids[0]}`, patchOp(op))
  })
  t.same(new Set((await Promise.all(onUser)).map(({ status }) => status)), new Set([200]))
  const scope = `tenant=${tenant}&product=${product}`
  const read = async (path: string) => (await services[1].manage('GET', path)).body.data
  t.equal((await read(`/groups/${group}?${scope}`)).members.length, 50)
  t.equal((await read(`/users/${ids[0]}?${scope}`)).raw.roles.length, 50)

  for (let run = 0; run < 3; run++) await Promise.all(services.map(processEvents))
  const expected = numbers.length + 1 + numbers.length * 2
  await waitUntil('all events', () => sequences(receiver.calls).length >= expected, 20_000)
  await sleep(200)
  t.same(
    sequences(receiver.calls),
    Array.from({ length: expected }, (_, index) => index + 1),
    'each event is delivered once, in order',
  )
})
