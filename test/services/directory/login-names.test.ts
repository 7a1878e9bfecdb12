/** A userName belongs to one user, however it is written. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { onEachDatabase } from './databases.js'
import { okta, patchOp, startService } from './harness.js'
import { refusal } from './scim-tools.js'

const spellings = [
  'ΑΣ@straße.example',
  'ασ@strasse.example',
  'ΑΣ@STRASSE.example ',
  'Ας@stra\u200Bße.example',
]
const [name = '', ...others] = spellings
const find = (userName: string): string =>
  `/Users?${new URLSearchParams({ filter: `userName eq "${userName}"` })}`

onEachDatabase(
  t,
  'another spelling of a userName is refused for others, finds its user, and may be taken by that user',
  async (t, service) => {
    const { scim, tenant, product } = await service.directory()
    const { body: user } = await scim('POST', '/Users', okta(name))
    const { body: other } = await scim('POST', '/Users', okta('other'))
    for (const userName of others) {
      const told = JSON.stringify(userName)
      t.match(await scim('POST', '/Users', okta(userName)), refusal(409, 'uniqueness'), told)
      t.match(await scim('PUT', `/Users/${other.id}`, okta(userName)), refusal(409, 'uniqueness'), told)
      t.match(
        await scim('GET', find(userName)),
        { body: { Resources: [{ id: user.id, userName: name }] } },
        told,
      )
      const scanned = find(userName).replace('userName+eq', 'displayName+pr+and+userName+eq')
      t.match(await scim('GET', scanned), { body: { totalResults: 1 } }, told)
      const of = new URLSearchParams({ tenant, product, email: userName })
      t.match(await service.manage('GET', `/users?${of}`), { body: { data: [{ id: user.id }] } }, told)
      const change = patchOp({ op: 'replace', path: 'userName', value: userName })
      t.match(await scim('PATCH', `/Users/${user.id}`, change), { status: 200, body: { userName } }, told)
      await scim('PUT', `/Users/${user.id}`, okta(name))
    }
  },
)

onEachDatabase(
  t,
  'a userName with control characters or without anything visible is refused',
  async (t, service) => {
    const { scim } = await service.directory()
    for (const userName of ['a\u0000', 'a\nb', '\u0085a', 'a\u007F']) {
      const answer = await scim('POST', '/Users', okta(userName))
      t.match(answer, refusal(400, 'invalidValue'), JSON.stringify(userName))
      t.equal(
        answer.body.detail,
        'userName must not hold control characters, such as a line break or U+0000.',
      )
    }
    for (const userName of ['', ' ', '\u200B', '\u00A0\uFEFF']) {
      const answer = await scim('POST', '/Users', okta(userName))
      t.match(answer, refusal(400, 'invalidValue'), JSON.stringify(userName))
      t.equal(answer.body.detail, 'userName is required and must not be blank.')
    }
  },
)

/** The lookup term of a user name in an older release. */
const oldTerm = (userName: string): string =>
  `${createHash('sha256').update(userName.toLowerCase()).digest('base64url').slice(0, 24)}:username`

/** What holds for data of an older release, once `age` has made it look so. */
async function reopened(t: Test, env: NodeJS.ProcessEnv, age: () => Promise<void>): Promise<void> {
  const before = await startService(t, env)
  const { scim, id, secret } = await before.directory()
  const { body: user } = await scim('POST', '/Users', okta(name))
  const { body: twin } = await scim('POST', '/Users', okta('twin'))
  await before.close()
  await age()

  const after = await startService(t, env)
  const headers = { authorization: `Bearer ${secret}` }
  const call = (method: string, path: string, body?: unknown) =>
    after.call(method, `/api/scim/v2.0/${id}${path}`, body, headers)
  for (const spelling of spellings) {
    t.match(await call('GET', find(spelling)), { body: { totalResults: 2 } }, spelling)
    t.match(await call('POST', '/Users', okta(spelling)), refusal(409, 'uniqueness'), spelling)
  }
  t.match(await call('GET', find('twin')), { body: { totalResults: 0 } })
  const rename = patchOp({ op: 'replace', path: 'displayName', value: 'New' })
  t.match(
    await call('PATCH', `/Users/${twin.id}`, rename),
    { status: 200, body: { userName: others[0] } },
    'two users that an older release let have one name can be changed',
  )
  t.match(
    await call('PUT', `/Users/${user.id}`, okta('alone')),
    { status: 200 },
    'and one of them be renamed',
  )
  t.match(await call('GET', find(name)), { body: { Resources: [{ id: twin.id }] } })
}

t.test('users of an older release are found and unique by the new rule (SQLite)', async t => {
  const DATA_DIR = t.testdir()
  await reopened(t, { DATA_DIR }, async () => {
    const db = new Database(join(DATA_DIR, 'directory.db'))
    const users = db.prepare("SELECT number, directory_id, raw FROM resources WHERE type = 'user'").all() as {
      number: number
      directory_id: string
      raw: string
    }[]
    db.exec("DELETE FROM terms WHERE type = 'user'; PRAGMA user_version = 2")
    for (const { number, directory_id, raw } of users) {
      const kept = JSON.parse(raw)
      if (kept.userName === 'twin') kept.userName = others[0]
      const terms = [oldTerm(kept.userName)]
      db.prepare('UPDATE resources SET raw = ?, terms = ? WHERE number = ?').run(
        JSON.stringify(kept),
        JSON.stringify(terms),
        number,
      )
      db.prepare("INSERT INTO terms VALUES (?, 'user', ?, ?)").run(directory_id, terms[0], number)
    }
    db.close()
  })
})

t.test('users of an older release are found and unique by the new rule (MongoDB)', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const client = new MongoClient(url)
  t.teardown(() => client.close())
  await reopened(t, { MONGODB_URL: url, DATA_DIR: t.testdir() }, async () => {
    const resources = client.db().collection('directory_resources')
    for (const { _id, raw } of await resources.find({ type: 'user' }).toArray()) {
      const kept = JSON.parse(raw)
      if (kept.userName === 'twin') kept.userName = others[0]
      const terms = [oldTerm(kept.userName)]
      await resources.updateOne({ _id }, { $set: { raw: JSON.stringify(kept), terms } })
    }
    const settings = client.db().collection<{ _id: string }>('directory_settings')
    await settings.updateOne({ _id: 'tables' }, { $set: { version: 1 } })
  })
})
