/** A webhook that is changed while a process delivers to it: events already claimed for it follow the change. */
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { hooked, type Received, sequences, startReceiver, startService, writeUsers } from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'

/** A receiver about to respond to the first of six events, which were claimed together. */
async function underWay(t: Test, settings: Record<string, string> = {}) {
  let answer = (_status: number): void => {}
  const held = new Promise<number>(resolve => {
    answer = resolve
  })
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, ...settings })
  const [old, next] = [await startReceiver(t, n => (n === 0 ? held : 204)), await startReceiver(t)]
  const directory = await service.directory({})
  await writeUsers(directory, ['a', 'b', 'c', 'd', 'e'])
  const { body } = await directory.scim('GET', '/Users')
  const members = body.Resources.map(({ id }: { id: string }) => ({ value: id }))
  const change = (body: object) => service.manage('PATCH', `/${directory.id}`, body)
  await change({ webhook_url: old.url, webhook_secret: 'the-first-secret' })
  await directory.scim('POST', '/Groups', { displayName: 'all', members })
  await waitUntil('the first call', () => old.calls.length === 1)
  return { service, directory, old, next, change, answer }
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`${store}: events that wait for a webhook never reach the webhook that replaces it`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    const { service, directory, old, next, change, answer } = await underWay(t, { MONGODB_URL })
    await change({ webhook_url: '' })
    await change({ webhook_url: next.url, webhook_secret: 'another-secret' })
    await writeUsers(directory, ['f'])
    answer(410)
    await waitUntil('the new event', () => next.calls.length > 0)
    t.same(sequences(next.calls), [12])
    t.equal(old.calls.length, 1, 'the removed webhook gets no further call')

    const scope = `?directoryId=${directory.id}`
    const [letter] = (await service.manage('GET', `/dead-letters${scope}`)).body.data
    t.match(letter, { payload: { sequence: 6 } }, 'the refused event is a dead letter')
    t.match(await service.manage('POST', `/dead-letters/${letter.id}/replay`), { status: 409 })
    t.match(await service.manage('POST', `/dead-letters/replay${scope}`), {
      body: { data: { replaying: 0 } },
    })
  })
}

t.test('events that wait for a webhook follow it to its new address', async t => {
  const { old, next, change, answer } = await underWay(t)
  await change({ webhook_url: next.url })
  answer(204)
  await waitUntil('the other events', () => next.calls.length === 5)
  t.same([sequences(old.calls), sequences(next.calls)], [[6], [7, 8, 9, 10, 11]])
})

t.test('a secret ended during a delivery signs none of the calls that follow', async t => {
  const { old, change, answer } = await underWay(t)
  await change({ webhook_secret: 'another-secret', overlap_seconds: 0 })
  await change({ webhook_secret: 'third-secret' })
  answer(204)
  await waitUntil('the other events', () => old.calls.length === 6)
  const signatures = ({ headers }: Received) => String(headers['webhook-signature']).split(' ').length
  t.same(
    old.calls.map(signatures),
    [1, 2, 2, 2, 2, 2],
    'later calls are signed with the second and third secrets, which are both valid',
  )
})

t.test('a webhook that is disabled during a delivery gets no more calls until it is enabled', async t => {
  const { service, directory, old, answer } = await underWay(t)
  const path = `/${directory.id}/webhooks/default`
  await service.manage('PATCH', path, { disabled: true })
  answer(204)
  await waitUntil('five waiting events', async () =>
    /directory_events_waiting 5/.test(await service.metrics()),
  )
  t.equal(old.calls.length, 1)
  await service.manage('PATCH', path, { disabled: false })
  await waitUntil('the other events', () => old.calls.length === 6)
  t.same(sequences(old.calls), [6, 7, 8, 9, 10, 11])
})

t.test('batch mode: a batch leaves out events for the replaced webhook', async t => {
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, DSYNC_WEBHOOK_BATCH_SIZE: '10' })
  const [old, next] = [await startReceiver(t), await startReceiver(t)]
  const directory = await hooked(service, old.url)
  await writeUsers(directory, ['a', 'b'])
  await service.manage('PATCH', `/${directory.id}`, { webhook_url: '' })
  const webhook = { webhook_url: next.url, webhook_secret: 'another-secret' }
  await service.manage('PATCH', `/${directory.id}`, webhook)
  await writeUsers(directory, ['c', 'd'])
  await service.manage('POST', '/cron/process-events')
  await waitUntil('the batch', () => next.calls.length > 0)
  t.same(sequences(next.calls), [3, 4])
  t.equal(old.calls.length, 0)
})
