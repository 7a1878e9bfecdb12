/** Several webhooks of one directory: each with its events, headers, secret, retries and switch. */
import t, { type Test } from 'tap'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { signatureHeaders } from '../../../../webhooks/sign.js'
import { matchList } from '../../../helpers/lists.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import {
  hooked,
  hookSecret,
  type Received,
  sequences,
  startReceiver,
  startService,
  writeUsers,
} from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'

const isSignedWith = ({ headers, text }: Received, secret: string): boolean => {
  const at = Number(/^t=(\d+)/.exec(String(headers['boxyhq-signature']))?.[1])
  const expected = signatureHeaders([secret], String(headers['webhook-id']), text, at)
  return headers['webhook-signature'] === expected['webhook-signature']
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`${store}: a failing webhook does not delay the other webhooks of its directory`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL })
    const [good, filtered] = [await startReceiver(t), await startReceiver(t)]
    let broken = true
    const failing = await startReceiver(t, () => (broken ? 500 : 204))
    const directory = await hooked(service, failing.url)
    const path = `/${directory.id}/webhooks`
    const second = await service.manage('POST', path, { endpoint: good.url })
    t.match(second, { status: 201, body: { data: { id: /^whk_/, endpoint: good.url, disabled: false } } })
    const third = { endpoint: filtered.url, secret: 'another-secret', events: ['user.deleted'] }
    t.match(await service.manage('POST', path, third), {
      status: 201,
      body: { data: { events: ['user.deleted'], secret: 'another-secret' } },
    })

    await writeUsers(directory, ['a', 'b'])
    await waitUntil('all events at the second webhook', () => good.calls.length === 2)
    t.same(sequences(good.calls), [1, 2])
    t.ok(isSignedWith(good.calls[0] as Received, second.body.data.secret), 'the generated secret signs')
    t.equal(failing.calls.length, 1, 'the failing webhook waits for its next attempt')
    const { body } = await directory.scim('GET', '/Users?filter=userName%20eq%20%22a%22')
    await directory.scim('DELETE', `/Users/${body.Resources[0].id}`)
    await waitUntil('the event for the filtering webhook', () => filtered.calls.length === 1)
    t.match(filtered.calls[0]?.event, { event: 'user.deleted', sequence: 3 })
    t.ok(isSignedWith(filtered.calls[0] as Received, 'another-secret'))

    broken = false
    await service.manage('POST', `/dead-letters/replay?directoryId=${directory.id}`)
    await waitUntil('all events at the first webhook', () => failing.calls.length === 4)
    t.same(sequences(failing.calls), [1, 1, 2, 3])
    const list = (await service.manage('GET', path)).body.data
    t.same(
      list.map(({ id }: { id: string }) => id.slice(0, 4)),
      ['defa', 'whk_', 'whk_'],
    )
  })
}

t.test('a disabled webhook misses the events of that time and gets earlier ones later', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  let broken = true
  const receiver = await startReceiver(t, () => (broken ? 500 : 204))
  const directory = await hooked(service, receiver.url)
  const path = `/${directory.id}/webhooks/default`
  await writeUsers(directory, ['a'])
  await waitUntil('the first attempt', () => receiver.calls.length === 1)
  await service.manage('PATCH', path, { disabled: true })
  await writeUsers(directory, ['b'])
  broken = false
  await service.manage('POST', `/dead-letters/replay?directoryId=${directory.id}`)
  await service.manage('PATCH', path, { disabled: false })
  await writeUsers(directory, ['c'])
  await waitUntil('the other events', () => receiver.calls.length === 3)
  t.same(sequences(receiver.calls), [1, 1, 3])
})

t.test('a removed webhook gets no more events, and its directory shows none', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const receiver = await startReceiver(t, () => 500)
  const directory = await hooked(service, receiver.url)
  await writeUsers(directory, ['a'])
  await waitUntil('the first attempt', () => receiver.calls.length === 1)
  const path = `/${directory.id}/webhooks/default`
  t.match(await service.manage('DELETE', path), { status: 200, body: { data: null } })
  t.match(await service.manage('DELETE', path), { status: 404 })
  await waitUntil('an empty queue', async () => /directory_events_waiting 0/.test(await service.metrics()))
  t.same((await service.manage('GET', `/${directory.id}`)).body.data.webhook, { endpoint: '', secret: '' })
  t.equal(receiver.calls.length, 1)
})

t.test('a webhook that is removed by an empty address leaves no events to the next one', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const [old, next] = [await startReceiver(t, () => 500), await startReceiver(t)]
  const directory = await hooked(service, old.url)
  await writeUsers(directory, ['a', 'b'])
  await waitUntil('the first attempt', () => old.calls.length === 1)
  await service.manage('PATCH', `/${directory.id}`, { webhook_url: '' })
  // Long before the next attempt is due.
  await waitUntil(
    'an empty queue',
    async () => /directory_events_waiting 0/.test(await service.metrics()),
    1000,
  )
  const webhook = { webhook_url: next.url, webhook_secret: 'another-secret' }
  await service.manage('PATCH', `/${directory.id}`, webhook)
  await writeUsers(directory, ['c'])
  await waitUntil('the new event', () => next.calls.length > 0)
  t.same(sequences(next.calls), [3])
})

t.test('a dead letter of a removed webhook is kept and cannot be replayed', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const receiver = await startReceiver(t, () => 410)
  const directory = await hooked(service, receiver.url)
  await writeUsers(directory, ['a'])
  const scope = `?directoryId=${directory.id}`
  const letters = async () => (await service.manage('GET', `/dead-letters${scope}`)).body.data
  const [letter] = await waitUntil('the dead letter', async () => {
    const list = await letters()
    return list.length === 1 && list
  })
  await service.manage('DELETE', `/${directory.id}/webhooks/default`)
  t.match(await service.manage('POST', `/dead-letters/${letter.id}/replay`), {
    status: 409,
    body: { error: { message: /was removed/ } },
  })
  t.match(await service.manage('POST', `/dead-letters/replay${scope}`), { body: { data: { replaying: 0 } } })
  t.same(await letters(), [letter])
})

t.test('the headers of a webhook are sent with each call, stored encrypted and never shown', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const receiver = await startReceiver(t)
  const directory = await hooked(service, receiver.url)
  const path = `/${directory.id}/webhooks/default`
  const headers = { Authorization: 'Bearer canary-header', 'X-Team': 'crm' }
  const { body } = await service.manage('PATCH', path, { headers })
  t.same(body.data.header_names, ['Authorization', 'X-Team'])
  t.notMatch(JSON.stringify(body), /canary/)
  await writeUsers(directory, ['a'])
  await waitUntil('the call', () => receiver.calls.length === 1)
  t.match(receiver.calls[0]?.headers, {
    authorization: 'Bearer canary-header',
    'x-team': 'crm',
    'content-type': 'application/json',
  })
  t.ok(isSignedWith(receiver.calls[0] as Received, hookSecret))
  await service.close()
  const kept = openSqlite(`${service.dataDir}/directory.db`)
  t.teardown(() => kept.close())
  const stored = await kept.directory(directory.id)
  t.notMatch(JSON.stringify(stored), /canary/)
  t.equal(stored?.webhook?.headers?.length, 2)
})

t.test('the headers of a webhook are dropped when its origin changes', async t => {
  const service = await startService(t)
  const webhook = { webhook_url: 'https://a.example/hook', webhook_secret: hookSecret }
  const { id } = await service.directory(webhook)
  const path = `/${id}/webhooks/default`
  const headers = { Authorization: 'Bearer canary-header' }
  const change = async (at: string, body: object): Promise<string[]> => {
    await service.manage('PATCH', at, body)
    return (await service.manage('GET', path)).body.data.header_names
  }
  t.same(await change(path, { headers }), ['Authorization'])
  t.same(await change(path, { endpoint: 'https://a.example/other' }), ['Authorization'])
  t.same(await change(path, { endpoint: 'https://b.example/hook' }), [], 'a new origin drops the headers')
  t.same(
    await change(path, { endpoint: 'https://c.example/hook', headers }),
    ['Authorization'],
    'headers sent with the new address are kept',
  )
  t.same(await change(`/${id}`, { webhook_url: 'https://d.example/hook' }), [], 'webhook_url drops them too')
})

t.test('an invalid webhook is refused with a message that says why', async t => {
  const service = await startService(t)
  const { id } = await service.directory()
  const ask = (body: object) =>
    service.manage('POST', `/${id}/webhooks`, { endpoint: 'https://x.example/', ...body })
  const refusals: [object, RegExp][] = [
    [{ endpoint: undefined }, /endpoint is required/],
    [{ endpoint: 'https://x.example:6379/' }, /port 6379 is not allowed/],
    [{ endpoint: 'https://x.example:25/' }, /port 25 is not allowed/],
    [{ endpoint: 'http://x.example/' }, /http is not encrypted.*WEBHOOK_ALLOW_HTTP=true/],
    [{ endpoint: 'https://10.1.1.1/' }, /not a public address/],
    [{ events: [] }, /events must be a list of user\.created/],
    [{ events: ['user.creatd'] }, /events must be/],
    [{ headers: { Host: 'evil' } }, /Host is set by the service itself/],
    [{ headers: { 'Webhook-Signature': 'v1,x' } }, /set by the service itself/],
    [{ headers: { 'Content-Length': '1' } }, /set by the service itself/],
    [{ headers: { 'X Y': 'a' } }, /not a header name/],
    [{ headers: { 'X-Y': 'a\r\nEvil: 1' } }, /visible ASCII/],
    [{ headers: { 'X-Y': 'a', 'x-y': 'b' } }, /each once/],
    [{ headers: ['a'] }, /headers must be an object/],
    [{ header: {} }, /Did you mean "headers"/],
    [{ header_names: [] }, /send headers/],
    [{ disabled: 'no' }, /disabled must be true or false/],
    [{ secret: 'short' }, /at least 6 characters/],
  ]
  for (const [body, message] of refusals) {
    t.match(await ask(body), { status: 400, body: { error: { message } } }, JSON.stringify(body))
  }
  for (const port of ['', ':443', ':80', ':8443']) {
    t.match(await ask({ endpoint: `https://x.example${port}/` }), { status: 201 }, port)
  }
  for (let more = 4; more < 10; more++) await ask({})
  t.match(await ask({}), { status: 409, body: { error: { message: /at most 10 webhooks/ } } })
  t.match(await service.manage('GET', `/${id}/webhooks/whk_none`), { status: 404 })
  t.match(await service.manage('POST', '/unknown/webhooks', { endpoint: 'https://x.example/' }), {
    status: 404,
  })
  t.match(await service.manage('PATCH', '/unknown/webhooks/x', { disabled: true }), { status: 404 })
})

const trial = async (t: Test, status: number, env: object = {}) => {
  const receiver = await startReceiver(t, () => status)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, ...env })
  const { id } = await hooked(service, receiver.url)
  const { body } = await service.manage('POST', `/${id}/webhooks/default/test`)
  const feed = await service.manage('GET', `/feed?directoryId=${id}`)
  t.same(feed.body.data, [], 'a test event is not in the feed')
  return { call: receiver.calls[0] as Received, told: body.data, id }
}

t.test('a test event is sent at once, signed like others, and its outcome is returned', async t => {
  const { call, told, id } = await trial(t, 204)
  t.same(told, { delivered: true, status_code: 204, error: null })
  t.match(call.event, {
    event: 'webhook.test',
    directory_id: id,
    data: { id, deactivated: false },
    sequence: 0,
  })
  t.ok(isSignedWith(call, hookSecret))
  const refused = await trial(t, 503)
  t.same(refused.told, { delivered: false, status_code: 503, error: 'the receiver answered 503' })
  const batch = await trial(t, 204, { DSYNC_WEBHOOK_BATCH_SIZE: '5' })
  matchList(t, batch.call.event, [{ event: 'webhook.test' }], 'in batch mode the test event comes in a list')
})
