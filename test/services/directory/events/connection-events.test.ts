/** Events about a directory itself: activated, deactivated, deleted. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { hooked, hookSecret, startReceiver, startService, writeUsers } from '../harness.js'

const WEBHOOK_ALLOW_PRIVATE = 'true'

for (const store of ['SQLite', 'MongoDB']) {
  const env = async (t: Parameters<typeof mongoUrl>[0]) => (store === 'MongoDB' ? await mongoUrl(t) : '')

  t.test(
    `${store}: a directory sends one event when it is deactivated and one when it is activated`,
    async t => {
      const MONGODB_URL = await env(t)
      if (MONGODB_URL === undefined) return
      const receiver = await startReceiver(t)
      const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL })
      const directory = await hooked(service, receiver.url)
      const set = (body: object) => service.manage('PATCH', `/${directory.id}`, body)
      await set({ deactivated: false })
      await Promise.all([set({ deactivated: true }), set({ deactivated: true }), set({ name: 'New' })])
      await set({ deactivated: false })
      await writeUsers(directory, ['a'])
      await waitUntil('all events', () => receiver.calls.length === 3)
      const { id, tenant, product } = directory
      t.same(
        receiver.calls.map(({ event: { event, sequence } }) => [event, sequence]),
        [
          ['dsync.deactivated', 1],
          ['dsync.activated', 2],
          ['user.created', 3],
        ],
      )
      t.match(receiver.calls[0]?.event, {
        ...{ tenant, product, directory_id: id },
        data: { id, type: 'okta-scim-v2', deactivated: true },
      })
      const feed = await service.manage('GET', `/feed?directoryId=${id}`)
      t.equal(feed.body.data.length, 3, 'the feed has the events too')
    },
  )

  t.test(`${store}: the dead letter of a deleted directory can be found, replayed and deleted`, async t => {
    const MONGODB_URL = await env(t)
    if (MONGODB_URL === undefined) return
    let broken = true
    const receiver = await startReceiver(t, () => (broken ? 410 : 204))
    const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL })
    const [one, other] = [await hooked(service, receiver.url), await hooked(service, receiver.url)]
    for (const { id } of [one, other]) await service.manage('DELETE', `/${id}`)
    const list = async (scope: string) => (await service.manage('GET', `/dead-letters?${scope}`)).body.data
    const byId = `directoryId=${one.id}`
    const byTenant = ({ tenant, product }: typeof one) => `tenant=${tenant}&product=${product}`
    const given = await waitUntil('both dead letters', async () => {
      const [first, second] = [(await list(byId)) ?? [], await list(byTenant(other))]
      return first.length + second.length === 2 && [first[0], second[0]]
    })
    t.match(given[0], { directory_id: one.id, payload: { event: 'dsync.deleted' } })

    broken = false
    const replay = (scope: string) => service.manage('POST', `/dead-letters/replay?${scope}`)
    t.match(await replay(byTenant(one)), { status: 200, body: { data: { replaying: 1 } } })
    await waitUntil('the deletion', () => receiver.calls.length === 3)
    t.equal(receiver.calls[2]?.event.directory_id, one.id)
    await waitUntil('no dead letter', async () => (await list(byTenant(one))).length === 0)
    const path = `/dead-letters/${given[1].id}`
    t.match(await service.manage('DELETE', path), { status: 200, body: { data: null, error: null } })
    t.match(await service.manage('DELETE', path), { status: 404 })
    t.same(await list(byTenant(other)), [])
    t.equal(receiver.calls.length, 3)
  })

  t.test(
    `${store}: a deletion is announced after the directory is gone, even by the next process`,
    async t => {
      const MONGODB_URL = await env(t)
      if (MONGODB_URL === undefined) return
      let broken = true
      const receiver = await startReceiver(t, () => (broken ? 500 : 204))
      const DATA_DIR = t.testdir()
      const first = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL, DATA_DIR })
      const directory = await hooked(first, receiver.url)
      await writeUsers(directory, ['a', 'b'])
      await waitUntil('an attempt', () => receiver.calls.length > 0)
      await first.manage('DELETE', `/${directory.id}`)
      t.match(await first.manage('GET', `/${directory.id}`), { status: 404 })
      await waitUntil('an attempt', () => receiver.calls.at(-1)?.event.event === 'dsync.deleted')
      await first.close()
      broken = false
      const before = receiver.calls.length

      const second = await startService(t, { WEBHOOK_ALLOW_PRIVATE, MONGODB_URL, DATA_DIR })
      await waitUntil('the deletion', () => receiver.calls.length > before, 20_000)
      const { headers, event, text } = receiver.calls.at(-1) ?? {}
      t.match(event, { event: 'dsync.deleted', sequence: 3, data: { id: directory.id, name: 'Test' } })
      const signed = `${headers?.['webhook-id']}.${headers?.['webhook-timestamp']}.${text}`
      const signature = `v1,${createHmac('sha256', hookSecret).update(signed).digest('base64')}`
      t.equal(
        headers?.['webhook-signature'],
        signature,
        'the event is signed with the secret that the directory had',
      )
      t.match(await second.manage('GET', `/${directory.id}`), { status: 404 })
      t.equal(receiver.calls.length, before + 1, 'no event about its users follows')
    },
  )
}
