/** Encryption keys: several at a time, and key rotation while the service runs. */
import { randomBytes } from 'node:crypto'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { rotateKeys } from '../../../services/directory/index.js'
import { rotateAll } from '../../../services/directory/rotate-keys.js'
import { createSecretBox } from '../../../services/directory/secrets.js'
import { openStore } from '../../../services/directory/store/open.js'
import { mongoUrl } from '../../helpers/mongo.js'
import { waitUntil } from '../../helpers/wait.js'
import { type Directory, startReceiver, startService } from './harness.js'
import { newDirectory } from './store/store-fixtures.js'

const [old, fresh] = [randomBytes(32), randomBytes(32)] as [Buffer, Buffer]
const listed = (...keys: Buffer[]) => keys.map(key => key.toString('base64')).join(',')

t.test('the first key encrypts, every key decrypts, and each sealed text names its key', async t => {
  const [before, both, after] = [[old], [fresh, old], [fresh]].map(keys =>
    createSecretBox(keys as [Buffer, ...Buffer[]]),
  )
  if (!before || !both || !after) return
  const sealed = before.seal('hush', 'a', 'scim')
  t.match(sealed, /^v2\.[\w-]{8}\./)
  t.equal(both.open(sealed, 'a', 'scim'), 'hush')
  t.throws(() => after.open(sealed, 'a', 'scim'), { message: /key that is not in ENCRYPTION_KEY/ })
  const unauthentic = { message: /unable to authenticate/ }
  t.throws(() => both.open(sealed, 'b', 'scim'), unauthentic, 'a text sealed for another owner is refused')
  t.throws(
    () => both.open(sealed.replace(/\.[\w-]+$/, '.AAAAAA'), 'a', 'scim'),
    unauthentic,
    'an altered text is refused',
  )

  const resealed = both.reseal(sealed, 'a', 'scim')
  t.equal(after.open(resealed, 'a', 'scim'), 'hush')
  t.equal(both.reseal(resealed, 'a', 'scim'), resealed)
  t.throws(() => both.open(sealed.replace('v2', 'v1'), 'a', 'scim'), { message: 'not an encrypted secret' })
})

const databases: [string, (t: Test) => Promise<NodeJS.ProcessEnv | undefined>][] = [
  ['SQLite', async () => ({})],
  [
    'MongoDB',
    async t => {
      const url = await mongoUrl(t)
      return url === undefined ? undefined : { MONGODB_URL: url }
    },
  ],
]

for (const [name, database] of databases) {
  t.test(`keys are rotated while the service runs, and no write is lost, ${name}`, async t => {
    const env = await database(t)
    if (env === undefined) return
    const DATA_DIR = t.testdir()
    const file = join(DATA_DIR, 'keys')
    const run = (text: string) => {
      writeFileSync(file, `${text}\n`)
      return startService(t, { DATA_DIR, ENCRYPTION_KEY_FILE: file, ...env })
    }
    const webhook = { webhook_url: 'https://example.com', webhook_secret: 'hush-hush' }
    const first = await run(listed(old))
    const made: Directory[] = []
    for (let i = 0; i < 105; i += 1) made.push(await first.directory(i < 3 ? webhook : {}))
    const [hooked] = made
    if (!hooked) return
    await first.manage('PATCH', `/${hooked.id}`, { webhook_secret: 'hush-again' })
    await first.manage('POST', `/${hooked.id}/scim-secret`, { overlap_seconds: 3600 })
    await first.close()

    const second = await run(listed(fresh, old))
    const rename = async () => {
      for (const { id } of [...made].reverse()) await second.manage('PATCH', `/${id}`, { name: `new ${id}` })
    }
    const renamed = rename()
    const rotation = await rotateKeys({ env: { DATA_DIR, ENCRYPTION_KEY_FILE: file, ...env } })
    await renamed
    t.match(rotation, { directories: 105, unreadable: { length: 0 }, done: true })
    for (const { id } of made) t.equal((await second.manage('GET', `/${id}`)).body.data.name, `new ${id}`)
    await second.close()

    const third = await run(listed(fresh))
    for (const { id, secret } of made) {
      const authorization = `Bearer ${secret}`
      const path = `/api/scim/v2.0/${id}/Users`
      t.equal(
        (await third.call('GET', path, undefined, { authorization })).status,
        200,
        'the SCIM secret from before the rotation still works',
      )
    }
    const { data } = (await third.manage('GET', `/${hooked.id}`)).body
    t.equal(data.webhook.secret, 'hush-again')
    await third.close()

    const store = await openStore({ mongodbUrl: env.MONGODB_URL ?? '', dataDir: DATA_DIR })
    t.teardown(() => store.close())
    const known = createSecretBox([old]).seal('', '', '').split('.')[1] as string
    for (const directory of await store.directories('all', { offset: 0, limit: 200 })) {
      t.notOk(JSON.stringify(directory).includes(`v2.${known}.`), 'no text is sealed with the old key')
    }
    t.match(await rotateAll(store, createSecretBox([fresh, old])), { reencrypted: 0, done: true })
    t.match((await rotateAll(store, createSecretBox([old]))).unreadable, { length: 105 })
  })
}

t.test(
  'a rotation covers further webhooks, their headers and the announcements of removed directories',
  async t => {
    const receiver = await startReceiver(t, () => 500)
    const DATA_DIR = t.testdir()
    const run = (...keys: Buffer[]) =>
      startService(t, { DATA_DIR, WEBHOOK_ALLOW_PRIVATE: 'true', ENCRYPTION_KEY: listed(...keys) })
    const first = await run(old)
    const [kept, gone] = [await first.directory(), await first.directory()]
    const webhook = { endpoint: receiver.url, secret: 'hush-hush', headers: { 'X-Key': 'hushed' } }
    for (const { id } of [kept, gone]) await first.manage('POST', `/${id}/webhooks`, webhook)
    await first.manage('DELETE', `/${gone.id}`)
    await waitUntil('the first attempt', () => receiver.calls.length === 1)
    await first.close()

    const ENCRYPTION_KEY = listed(fresh, old)
    t.match(await rotateKeys({ env: { DATA_DIR, ENCRYPTION_KEY } }), {
      directories: 2,
      reencrypted: 2,
      done: true,
    })
    const second = await run(fresh)
    await waitUntil('the next attempt', () => receiver.calls.length === 2, 20_000)
    t.match(receiver.calls[1], { headers: { 'x-key': 'hushed' }, event: { event: 'dsync.deleted' } })
    const { data } = (await second.manage('GET', `/${kept.id}/webhooks`)).body
    t.match(data, [{ secret: 'hush-hush', header_names: ['X-Key'] }])
  },
)

t.test('a rotation reports as unfinished when a directory changes during every attempt', async t => {
  const store = await openStore({ mongodbUrl: '', dataDir: t.testdir() })
  t.teardown(() => store.close())
  const directory = newDirectory()
  const scimSecret = createSecretBox([old]).seal('hush', directory.id, 'scim')
  await store.createDirectory({ ...directory, webhook: undefined, scimSecret })
  const busy = { ...store, replaceDirectory: async () => false }
  const box = createSecretBox([fresh, old])
  t.match(await rotateAll(busy, box), { directories: 1, reencrypted: 0, done: false })
  t.match(await rotateAll(store, box), { directories: 1, reencrypted: 1, done: true })
})

t.test('the service refuses to start without a key that a directory still needs', async t => {
  const DATA_DIR = t.testdir()
  const run = (...keys: Buffer[]) => startService(t, { DATA_DIR, ENCRYPTION_KEY: listed(...keys) })
  for (const keys of [[fresh], [old, fresh]]) {
    const service = await run(...keys)
    await service.directory()
    await service.close()
  }
  for (const key of [fresh, old]) await t.rejects(run(key), { message: /cannot be decrypted with this key/ })
  await (await run(old, fresh)).close()
})

t.test('an empty or damaged key file stops the start', async t => {
  for (const [text, message] of [
    ['', /encryption\.key is damaged: it must hold 32 bytes in base64/],
    ['c2hvcnQ=', /encryption\.key is damaged/],
    [`${'*'.repeat(43)}=`, /encryption\.key is damaged/],
  ] as const) {
    const DATA_DIR = t.testdir({ 'encryption.key': text })
    await t.rejects(startService(t, { DATA_DIR }), { message })
  }
  const DATA_DIR = t.testdir()
  await (await startService(t, { DATA_DIR })).close()
  const file = join(DATA_DIR, 'encryption.key')
  t.match(readFileSync(file, 'utf8'), /^[\w+/]{43}=\n$/)
  appendFileSync(file, 'x')
  await t.rejects(startService(t, { DATA_DIR }), { message: /is damaged/ })
})

t.test('a rotation in a folder without a database is refused', async t => {
  await t.rejects(rotateKeys({ env: { DATA_DIR: t.testdir() } }), { message: /holds no directory\.db/ })
})
