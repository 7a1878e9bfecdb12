/** What integrators rely on beyond single calls: dead letters, replay, log, feed, rotation of secrets. */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isStale } from '../../../../services/directory/events/retry.js'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { backOff, isFinal } from '../../../../webhooks/retry.js'
import { publicOnly } from '../../../../webhooks/target.js'
import { projectFile } from '../../../helpers/root.js'
import { waitUntil } from '../../../helpers/wait.js'
import { hooked, okta, sequences, startReceiver, startService, writeUsers } from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'

/** A receiver that rejects events by their sequence. */
async function choosy(t: Test, refuses: (sequence: number) => number | undefined) {
  const receiver = await startReceiver(t, call => {
    const [first] = [receiver.calls[call]?.event].flat()
    return refuses(first.sequence) ?? 204
  })
  return receiver
}

t.test('metrics count SCIM responses and outcomes of events, and show how many events wait', async t => {
  const receiver = await startReceiver(t, call => (call === 0 ? 500 : 204))
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const shows = async (...lines: string[]) => {
    const text = await service.metrics()
    return lines.every(line => text.split('\n').includes(line))
  }
  const directory = await hooked(service, receiver.url)
  await writeUsers(directory, ['a', 'b', 'a'])
  await directory.scim('GET', '/Users', undefined, { authorization: 'Bearer wrong' })
  await waitUntil('the failed call', () =>
    shows('directory_events_total{outcome="failed"} 1', 'directory_events_waiting 2'),
  )
  t.ok(
    await shows(
      'directory_scim_requests_total{method="POST",code="201"} 2',
      'directory_scim_requests_total{method="POST",code="409"} 1',
      'directory_scim_requests_total{method="GET",code="401"} 1',
    ),
  )
  await service.manage('POST', `/dead-letters/replay?directoryId=${directory.id}`)
  await waitUntil('both delivered', () =>
    shows('directory_events_total{outcome="delivered"} 2', 'directory_events_waiting 0'),
  )
})

t.test('an event becomes a dead letter after its last attempt, and the next events are sent', async t => {
  let refused = 1
  const receiver = await choosy(t, sequence => (sequence <= refused ? 500 : undefined))
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const directory = await hooked(service, `${receiver.url}?token=canary-in-url`, 'canary-secret')
  await writeUsers(directory, ['a', 'b', 'c'])
  const scope = `?directoryId=${directory.id}`
  for (let attempt = 1; attempt <= 11; attempt++) {
    await waitUntil(`attempt ${attempt}`, () => receiver.calls.length >= attempt)
    t.same(sequences(receiver.calls).slice(0, attempt), Array(attempt).fill(1), 'the later events wait')
    await waitUntil(
      'the logged failure',
      () => service.logged.filter(line => /not delivered|gave up/.test(line)).length === attempt,
    )
    if (attempt < 11) await service.manage('POST', `/dead-letters/replay${scope}`)
  }
  await waitUntil('the other events', () => receiver.calls.length === 13)
  t.same(sequences(receiver.calls).slice(-2), [2, 3])
  const { body } = await waitUntil('the dead letter', async () => {
    const answer = await service.manage('GET', `/dead-letters${scope}`)
    return answer.body.data.length === 1 && answer
  })
  const [letter] = body.data
  t.match(letter, {
    directory_id: directory.id,
    attempts: 11,
    error: 'the receiver answered 500',
    replaying: false,
    payload: { id: letter.id, sequence: 1 },
  })

  await service.manage('POST', `/dead-letters/${letter.id}/replay`)
  await waitUntil('the replay', () => receiver.calls.length === 14)
  await waitUntil('the new number of attempts', async () => {
    const again = await service.manage('GET', `/dead-letters${scope}`)
    return again.body.data[0].attempts === 12 && again.body.data[0].replaying === false
  })
  refused = 0
  t.match(await service.manage('POST', `/dead-letters/replay${scope}`), { body: { data: { replaying: 1 } } })
  await waitUntil('the delivery', () => receiver.calls.length === 15)
  t.equal(
    receiver.calls[14]?.text,
    receiver.calls[0]?.text,
    'the replay sends the same event under the same id',
  )
  await waitUntil('no dead letter', async () => {
    return (await service.manage('GET', `/dead-letters${scope}`)).body.data.length === 0
  })
  t.match(await service.manage('POST', `/dead-letters/${letter.id}/replay`), { status: 404 })
  t.notMatch(service.logged.join('\n'), /canary/, 'the log shows neither the address nor the secret')
})

t.test('a receiver that responds 410 gets no second attempt', async t => {
  const receiver = await startReceiver(t, () => 410)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { id, scim } = await hooked(service, receiver.url)
  await scim('POST', '/Users', okta('a'))
  await waitUntil('the dead letter', async () => {
    return (await service.manage('GET', `/dead-letters?directoryId=${id}`)).body.data.length === 1
  })
  t.equal(receiver.calls.length, 1)
})

t.test('waits grow from 2 s to a day, and events end after 11 attempts, a 410 or about a week', async t => {
  const waits = Array.from({ length: 10 }, (_, index) => backOff(index + 1) / 1000)
  for (const [index, seconds] of [2, 5, 15, 60, 300, 1800, 7200, 21_600, 43_200, 86_400].entries()) {
    const wait = waits[index] ?? 0
    t.ok(wait >= seconds * 0.75 && wait <= seconds * 1.25, `a wait of ${wait} s is about ${seconds} s`)
  }
  t.same([isFinal(10, 500), isFinal(11, 500), isFinal(1, 410)], [false, true, true])
  const now = Date.parse('2026-01-10T00:00:00Z')
  t.same([isStale('2026-01-04T00:00:00Z', now), isStale('2026-01-02T00:00:00Z', now)], [false, true])
})

t.test('a webhook with a new address is tried at once', async t => {
  const [bad, good] = [await startReceiver(t, () => 500), await startReceiver(t)]
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { id, scim } = await hooked(service, bad.url)
  await scim('POST', '/Users', okta('a'))
  for (let call = 1; call <= 2; call++) {
    await waitUntil(`call ${call}`, () => bad.calls.length >= call)
  }
  await waitUntil(
    'a wait of 5 s',
    () => service.logged.filter(line => /not delivered/.test(line)).length === 2,
  )
  const before = Date.now()
  await service.manage('PATCH', `/${id}`, { webhook_url: good.url })
  await waitUntil('the event', () => good.calls.length === 1)
  t.ok(Date.now() - before < 2000)
})

t.test('the log has an entry for each message while it is enabled, until the entry expires', async t => {
  const receiver = await startReceiver(t, call => (call === 0 ? 503 : 202))
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { id, scim, tenant, product } = await hooked(service, receiver.url)
  await scim('POST', '/Users', okta('unlogged'))
  await waitUntil('the unlogged event', () => receiver.calls.length === 2)
  t.match(await service.manage('PATCH', `/${id}`, { log_webhook_events: true }), {
    body: { data: { log_webhook_events: true } },
  })
  await writeUsers({ scim }, ['a', 'b'])
  const logged = () => service.manage('GET', `/events?tenant=${tenant}&product=${product}`)
  const { body } = await waitUntil('both entries', async () => {
    const answer = await logged()
    return answer.body.data.length === 2 && answer
  })
  const [newest] = body.data
  t.match(newest, {
    webhook_endpoint: receiver.url,
    status_code: 202,
    delivered: true,
    attempts: 1,
    error: null,
    payload: { event: 'user.created', sequence: 3, id: newest.id },
  })
  t.same((await service.manage('GET', `/events/${newest.id}`)).body.data, newest)
  const first = await service.manage('GET', `/events?directoryId=${id}&pageLimit=1`)
  const second = await service.manage('GET', `/events?directoryId=${id}&pageToken=${first.body.pageToken}`)
  t.same([...first.body.data, ...second.body.data], body.data, 'two pages give the whole log')
  t.match(await service.manage('DELETE', `/events?directoryId=${id}`), { status: 200 })
  t.same((await logged()).body.data, [])
  t.match(await service.manage('GET', `/events/${newest.id}`), { status: 404 })
  t.match(await service.manage('GET', '/events'), { status: 400 })

  await scim('POST', '/Users', okta('c'))
  await waitUntil('the entry', async () => (await logged()).body.data.length === 1)
  await service.close()
  const brief = await startService(t, { DATA_DIR: service.dataDir, DSYNC_WEBHOOK_LOGS_TTL: '1s' })
  await waitUntil('the expiry of the entry', async () => {
    return (await brief.manage('GET', `/events?directoryId=${id}`)).body.data.length === 0
  })
})

t.test('the feed returns every event in order, from a cursor on', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { id, tenant, product } = directory
  await writeUsers(directory, ['a', 'b', 'c'])
  const read = async (query: string) => (await service.manage('GET', `/feed?${query}`)).body
  const first = await read(`tenant=${tenant}&product=${product}&pageLimit=2`)
  t.same(
    first.data.map((event: { sequence: number }) => event.sequence),
    [1, 2],
  )
  t.match(first.data[0], { event: 'user.created', directory_id: id, id: /^evt_/, data: { email: 'a' } })
  const second = await read(`directoryId=${id}&cursor=${first.cursor}`)
  t.same(
    second.data.map((event: { sequence: number }) => event.sequence),
    [3],
  )
  const third = await read(`directoryId=${id}&cursor=${second.cursor}`)
  t.same(
    third,
    { data: [], cursor: second.cursor, error: null },
    'at the end of the feed the cursor stays the same',
  )
  await writeUsers(directory, ['d'])
  t.equal((await read(`directoryId=${id}&cursor=${third.cursor}`)).data[0].data.email, 'd')

  const other = await service.directory({ tenant, product })
  t.match(await service.manage('GET', `/feed?directoryId=${other.id}&cursor=${first.cursor}`), {
    status: 400,
  })
  t.match(await service.manage('GET', `/feed?directoryId=${id}&cursor=x`), { status: 400 })
  t.match(await service.manage('GET', `/feed?tenant=${tenant}&product=${product}`), {
    status: 400,
    body: { error: { message: /several directories/ } },
  })
  t.match(await service.manage('GET', '/feed?directoryId=unknown'), { status: 404 })

  const store = openSqlite(join(service.dataDir, 'directory.db'))
  t.teardown(() => store.close())
  await store.pruneSome({ log: '', dead: '', events: '9999' })
  t.match(await service.manage('GET', `/feed?directoryId=${id}&cursor=${first.cursor}`), { status: 410 })
  t.same((await read(`directoryId=${id}`)).data, [])
})

t.test(
  'after a change of the secret old secrets sign for a day, and none is stored in plain text',
  async t => {
    const receiver = await startReceiver(t)
    const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
    const { id, scim } = await hooked(service, receiver.url, 'the-first-secret')
    await service.manage('PATCH', `/${id}`, { webhook_secret: 'the-secret-between' })
    const { body } = await service.manage('PATCH', `/${id}`, { webhook_secret: 'the-second-secret' })
    t.equal(body.data.webhook.secret, 'the-second-secret')
    const left = Date.parse(body.data.webhook.old_secret_valid_until) - Date.now()
    t.ok(Math.abs(left - 24 * 60 * 60 * 1000) < 60_000)
    await scim('POST', '/Users', okta('ada'))
    const { headers, text } = await waitUntil('the event', () => receiver.calls[0])
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
    const sign = (key: string) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
    const [second, between, first] = ['the-second-secret', 'the-secret-between', 'the-first-secret'].map(sign)
    t.equal(
      headers['webhook-signature'],
      [second, between, first].join(' '),
      'each secret signs until its own end',
    )
    const [, code = ''] = /```js\n([\s\S]*?)```/.exec(projectFile('docs/webhooks.md')) ?? []
    const { isGenuine } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
    for (const key of ['the-first-secret', 'the-secret-between', 'the-second-secret'])
      t.ok(isGenuine(headers, text, key), 'the documented function accepts the signature')
    t.notOk(isGenuine(headers, `${text} `, 'the-second-secret'))
    const [, time, boxyhq] = /^t=(\d+),s=(\w+)$/.exec(String(headers['boxyhq-signature'])) ?? []
    t.equal(boxyhq, createHmac('sha256', 'the-second-secret').update(`${time}.${text}`).digest('hex'))
    for (const file of readdirSync(service.dataDir)) {
      const bytes = readFileSync(join(service.dataDir, file), 'latin1')
      t.notMatch(bytes, /the-(first|second)-secret|the-secret-between/, file)
    }
  },
)

t.test('a leaked webhook secret can be ended at once', async t => {
  const receiver = await startReceiver(t)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { id, scim } = await hooked(service, receiver.url, 'the-first-secret')
  const change = (body: object) => service.manage('PATCH', `/${id}`, body)
  for (let n = 1; n <= 8; n++) await change({ webhook_secret: `secret-${n}` })
  t.match(await change({ webhook_secret: 'secret-9' }), {
    status: 409,
    body: { error: { message: /overlap_seconds 0/ } },
  })
  const ended = await change({ webhook_secret: 'secret-9', overlap_seconds: 0 })
  t.same(ended.body.data.webhook, { endpoint: receiver.url, secret: 'secret-9' })
  await scim('POST', '/Users', okta('ada'))
  const { headers } = await waitUntil('the event', () => receiver.calls[0])
  t.match(headers['webhook-signature'], /^v1,\S+$/, 'the call has one signature')

  const path = `/${id}/webhooks/default`
  const hour = await service.manage('PATCH', path, { secret: 'secret-10', overlap_seconds: 3600 })
  const left = Date.parse(hour.body.data.old_secret_valid_until) - Date.now()
  t.ok(Math.abs(left - 3_600_000) < 60_000)
  const again = await service.manage('PATCH', path, { secret: 'secret-10', overlap_seconds: 0 })
  t.equal(again.body.data.old_secret_valid_until, undefined, 'the overlap can end without a new secret')
  for (const answer of [
    await change({ name: 'New', overlap_seconds: 0 }),
    await service.manage('PATCH', path, { disabled: true, overlap_seconds: 0 }),
    await change({ webhook_secret: 'secret-11', overlap_seconds: -1 }),
    await service.manage('POST', `/${id}/webhooks`, { endpoint: receiver.url, overlap_seconds: 0 }),
  ]) {
    t.match(answer, { status: 400, body: { error: { message: /overlap_seconds/ } } })
  }
})

t.test('a name is checked at every resolution, and one private address is enough to refuse it', async t => {
  const answers = [['8.8.8.8'], ['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['2606:4700::1111', '::1']]
  const lookup = publicOnly((_name, _options, callback) =>
    callback(
      null,
      (answers.shift() ?? []).map(address => ({ address, family: 4 })),
    ),
  )
  const outcome = () =>
    new Promise(resolve =>
      lookup('rebind.example', {}, (error, address) => resolve(error?.message ?? address)),
    )
  t.equal(await outcome(), '8.8.8.8')
  for (const what of ['rebound', 'one of two inside', 'IPv6']) {
    t.match(await outcome(), /rebind\.example is not a public address/, what)
  }
  t.match(await outcome(), /has no address/)
})

t.test('a kept-alive connection that the receiver closes is not counted as a failure', async t => {
  const bodies: string[] = []
  const receiver = createServer(socket => {
    let calls = 0
    socket.on('error', () => undefined)
    socket.on('data', chunk => {
      if (++calls > 1) return socket.destroy()
      bodies.push(chunk.toString())
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
  })
  await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
  t.teardown(() => receiver.close())
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { port } = receiver.address() as AddressInfo
  await writeUsers(await hooked(service, `http://127.0.0.1:${port}/`), ['a', 'b', 'c'])
  await waitUntil('all three', () => bodies.length === 3, 1500)
  t.notMatch(service.logged.join('\n'), /not delivered/)
})

t.test('closing the service waits for the call in flight, which is not repeated', async t => {
  const receiver = await startReceiver(t, () => sleep(500, 204))
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  await writeUsers(await hooked(service, receiver.url), ['a', 'b'])
  await waitUntil('the first call', () => receiver.calls.length === 1)
  await service.close()
  t.same(sequences(receiver.calls), [1], 'the second event is not sent while the service closes')
  await startService(t, { WEBHOOK_ALLOW_PRIVATE, DATA_DIR: service.dataDir })
  await waitUntil('the second event', () => receiver.calls.length === 2)
  t.same(sequences(receiver.calls), [1, 2])
})
