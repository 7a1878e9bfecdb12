import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { signatureHeaders } from '../../../../webhooks/sign.js'
import { isPublicAddress, refusedTarget } from '../../../../webhooks/target.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { okta, patchOp, type Service, startReceiver, startService } from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'
const secret = 'hush-hush'
const hooked = (service: Service, webhook_url: string) =>
  service.directory({ webhook_url, webhook_secret: secret })

for (const store of ['SQLite', 'MongoDB']) {
  t.test(
    `${store}: each change sends its events once and in order, and requests without a change send none`,
    async t => {
      const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
      if (MONGODB_URL === undefined) return
      const receiver = await startReceiver(t)
      const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL })
      const { scim, id: directory_id, tenant, product } = await hooked(service, receiver.url)
      const ada = (await scim('POST', '/Users', okta('ada', { password: 'canary' }))).body.id
      const eve = (await scim('POST', '/Users', okta('eve'))).body.id
      await scim('POST', '/Users', okta('ADA'))
      await scim('PUT', `/Users/${ada}`, okta('ada'))
      await scim('PATCH', `/Users/${ada}`, patchOp({ op: 'replace', value: { active: false } }))
      const members = [{ value: ada }]
      const group = (await scim('POST', '/Groups', { displayName: 'Team', members })).body.id
      await scim('PATCH', `/Groups/${group}`, patchOp({ op: 'add', path: 'members', value: members }))
      await scim(
        'PATCH',
        `/Groups/${group}`,
        patchOp({ op: 'replace', value: { id: group, displayName: 'Team' } }),
      )
      await scim(
        'PATCH',
        `/Groups/${group}`,
        patchOp(
          { op: 'add', path: 'members', value: [{ value: eve }] },
          { op: 'remove', path: `members[value eq "${ada}"]` },
          { op: 'replace', value: { displayName: 'Crew' } },
        ),
      )
      await scim('DELETE', `/Users/${eve}`)
      await scim('DELETE', `/Groups/${group}`)
      const expected = [
        ...['user.created', 'user.created', 'user.updated', 'group.created', 'group.user_added'],
        ...['group.updated', 'group.user_removed', 'group.user_added'],
        ...['group.user_removed', 'user.deleted', 'group.deleted'],
      ]
      await waitUntil('all events', () => receiver.calls.length >= expected.length)
      await sleep(100)
      const events = receiver.calls.map(call => call.event)
      t.same(
        events.map(({ event }) => event),
        expected,
      )
      t.same(
        events.map(({ sequence }) => sequence),
        expected.map((_, index) => index + 1),
      )
      t.equal(new Set(events.map(({ id }) => id)).size, expected.length)
      const { password: _, ...sent } = okta('ada', { password: 'canary' }) as Record<string, unknown>
      t.match(events[0], { tenant, product, directory_id, id: /^evt_/, created_at: /^\d{4}-.*Z$/ })
      t.same(events[0].data, {
        id: ada,
        first_name: 'Ada',
        last_name: 'Lovelace',
        email: 'ada',
        active: true,
        raw: { ...sent, id: ada },
      })
      t.equal(events[2].data.active, false)
      t.same(events[2].previous_attributes, { active: true, raw: { active: true } })
      t.same(events[5].previous_attributes, { name: 'Team', raw: { displayName: 'Team' } })
      t.notOk(events.some(event => 'previous_attributes' in event && !event.event.endsWith('.updated')))
      t.match(events[3].data, { id: group, name: 'Team', raw: { displayName: 'Team' } })
      t.match(events[6].data, {
        id: ada,
        email: 'ada',
        group: { id: group, name: 'Crew', raw: { displayName: 'Crew' } },
      })
      t.notOk(JSON.stringify([receiver.calls, service.logged]).includes('canary'))
    },
  )
}

t.test('a webhook call is signed in both formats over the bytes that were sent', async t => {
  const receiver = await startReceiver(t)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const { scim } = await hooked(service, receiver.url)
  await scim('POST', '/Users', okta('ada'))
  const call = await waitUntil('the event', () => receiver.calls[0])
  t.match(call.headers, { 'content-type': 'application/json', 'webhook-id': call.event.id })
  const [, time, boxyhq] =
    /^t=(\d{13}),s=([0-9a-f]{64})$/.exec(String(call.headers['boxyhq-signature'])) ?? []
  t.equal(boxyhq, createHmac('sha256', secret).update(`${time}.${call.text}`).digest('hex'))
  const signed = `${call.headers['webhook-id']}.${call.headers['webhook-timestamp']}.${call.text}`
  t.equal(
    call.headers['webhook-signature'],
    `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`,
  )
  t.ok(Math.abs(Number(call.headers['webhook-timestamp']) - Date.now() / 1000) < 30)
  // Test vector of the Standard Webhooks reference implementation.
  const vector = signatureHeaders(
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    '{"test": 2432232314}',
    1614265330000,
  )
  t.equal(vector['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

t.test('a slow or failing receiver delays neither the identity provider nor another directory', async t => {
  let open: (status: number) => void = () => undefined
  const first = new Promise<number>(resolve => {
    open = resolve
  })
  const slow = await startReceiver(t, call => (call === 0 ? first : call === 1 ? 302 : 204))
  const quick = await startReceiver(t)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
  const one = await hooked(service, slow.url)
  const two = await hooked(service, quick.url)
  const before = Date.now()
  await one.scim('POST', '/Users', okta('a'))
  await one.scim('POST', '/Users', okta('b'))
  await two.scim('POST', '/Users', okta('c'))
  t.ok(Date.now() - before < 5000, 'requests get their responses while the receiver holds its call')
  await waitUntil('the other directory', () => quick.calls.length === 1)
  t.equal(slow.calls.length, 1, 'the receiver gets one call at a time')
  open(204)
  await waitUntil('the retry', () => slow.calls.length === 3)
  t.same(
    slow.calls.map(({ event }) => event.sequence),
    [1, 2, 2],
    'a redirect counts as a failure, and the event is sent again',
  )
  t.equal(slow.calls[1]?.text, slow.calls[2]?.text, 'the retry sends the same bytes')
  const waited = (slow.calls[2]?.at ?? 0) - (slow.calls[1]?.at ?? 0)
  t.ok(waited > 1400 && waited < 4000, `the retry comes after about 2 s (${waited} ms)`)
  t.match(service.logged.join('\n'), /webhook not delivered .*answered 302/)
})

t.test('events survive a restart: undelivered ones are sent after the next start', async t => {
  const DATA_DIR = t.testdir()
  const receiver = await startReceiver(t, call => (call === 0 ? 500 : 200))
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, DATA_DIR })
  const { scim } = await hooked(service, receiver.url)
  await scim('POST', '/Users', okta('ada'))
  await waitUntil('the refused call', () => /answered 500/.test(service.logged.join()))
  await scim('POST', '/Users', okta('eve'))
  await service.close()
  t.equal(receiver.calls.length, 1)
  await startService(t, { WEBHOOK_ALLOW_PRIVATE, DATA_DIR })
  await waitUntil('both events', () => receiver.calls.length === 3)
  t.same(
    receiver.calls.map(({ event }) => event.sequence),
    [1, 1, 2],
  )
})

t.test(
  'the membership events of one change are bounded in size, and a deletion sends them in parts',
  async t => {
    const receiver = await startReceiver(t)
    const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE })
    const { scim } = await hooked(service, receiver.url)
    const note = 'x'.repeat(60 * 1024)
    const big = async (name: string) => (await scim('POST', '/Users', okta(name, { note }))).body.id
    const members: { value: string }[] = []
    for (let n = 0; n < 300; n++) members.push({ value: await big(`u${n}`) })
    const group = { displayName: 'Team', note }
    const { id } = (await scim('POST', '/Groups', group)).body
    const join = (value: object[]) =>
      scim('PATCH', `/Groups/${id}`, patchOp({ op: 'add', path: 'members', value }))
    t.match(await join(members), { status: 413, body: { scimType: 'tooMany', detail: /name fewer members/ } })
    t.same((await scim('GET', `/Groups/${id}`)).body.members, [], 'the refused change added no member')
    t.equal((await join(members.slice(0, 150))).status, 200)
    const [{ value: leaver } = { value: '' }] = members
    for (let n = 0; n < 120; n++) {
      await scim('POST', '/Groups', { displayName: `g${n}`, members: members.slice(0, 1) })
    }
    t.equal((await scim('DELETE', `/Users/${leaver}`)).status, 204)
    t.equal((await scim('GET', `/Users/${leaver}`)).status, 404)
    const expected = 300 + 1 + 150 + 2 * 120 + 121 + 1
    await waitUntil('all events', () => receiver.calls.length === expected, 20_000)
    const last = receiver.calls.slice(-122).map(call => call.event)
    t.equal(
      last.filter(({ event, data }) => event === 'group.user_removed' && data.id === leaver).length,
      121,
    )
    t.match(last.at(-1), { event: 'user.deleted', data: { id: leaver }, sequence: expected })
  },
)

t.test('private and loopback targets are refused unless allowed, as addresses and as names', async t => {
  const receiver = await startReceiver(t)
  const DATA_DIR = t.testdir()
  const lenient = await startService(t, { WEBHOOK_ALLOW_PRIVATE, DATA_DIR })
  const byAddress = await hooked(lenient, receiver.url)
  const byName = await hooked(lenient, receiver.url.replace('127.0.0.1', 'localhost'))
  await lenient.close()
  const service = await startService(t, { DATA_DIR, WEBHOOK_ALLOW_HTTP: 'true' })
  for (const host of ['127.0.0.1', 'localhost']) {
    const webhook_url = receiver.url.replace('127.0.0.1', host)
    const { status, body } = await service.manage('POST', '', {
      ...{ tenant: 't', product: 'p', webhook_url, webhook_secret: secret },
    })
    t.equal(status, 400, host)
    t.match(body.error.message, `${host} is not a public address; WEBHOOK_ALLOW_PRIVATE=true allows it`)
  }
  for (const [{ id, secret }, name] of [
    [byAddress, 'a'],
    [byName, 'b'],
  ] as const) {
    const authorization = `Bearer ${secret}`
    await service.call('POST', `/api/scim/v2.0/${id}/Users`, okta(name), { authorization })
  }
  await waitUntil(
    'both refusals',
    () => service.logged.filter(line => /is not a public address/.test(line)).length === 2,
  )
  t.equal(receiver.calls.length, 0)

  const inside = [
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
  ]
  inside.push(
    '::1',
    '::',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
  )
  inside.push('::127.0.0.1', '::8.8.8.8', '::a9fe:a9fe', 'fec0::1', '::ffff:0:127.0.0.1', '64:ff9b:1::1')
  for (const address of inside) t.notOk(isPublicAddress(address), address)
  for (const address of ['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])
    t.ok(isPublicAddress(address), address)
  for (const host of ['127.1', '0x7f000001', '2130706433', '[::1]', '[::ffff:7f00:1]', '017700000001']) {
    t.ok(refusedTarget(new URL(`http://${host}/`), { allowPrivate: false, allowHttp: true }), host)
  }
  t.notOk(
    refusedTarget(new URL('https://example.com/'), { allowPrivate: false, allowHttp: true }),
    'a target given by name is checked only when it is resolved',
  )
})
