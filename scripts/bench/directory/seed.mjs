/** Fills a directory directly in its database, bypassing HTTP and the service: filling it is not measured. */
import { join } from 'node:path'
import Database from 'libsql'
import { MongoClient } from 'mongodb'
import { inProject } from '../../lib/run.mjs'

const built = file => import(inProject('dist', 'services', 'directory', file))
const { newResource } = await built('sync/resources.js')
const { termsOf } = await built('scim/terms.js')

const chunk = 5000

/** The nth user as an identity provider sends it. */
export const user = n => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: `user-${n}@example.com`,
  externalId: `ext-${n}`,
  name: { givenName: 'Ada', familyName: `Lovelace ${n}` },
  emails: [{ primary: true, value: `user-${n}@example.com`, type: 'work' }],
  displayName: `Ada Lovelace ${n}`,
  active: true,
})

/**
 * Inserts users, and one group with the first `members` of them.
 *
 * @param directory its `id`, `tenant` and `product`
 * @returns the group's id, the ids of the users `outside` it, and the `last` user
 */
export async function seed({ dataDir, mongodbUrl }, directory, { count, members }) {
  const database = mongodbUrl ? intoMongodb(mongodbUrl) : intoSqlite(dataDir)
  const base = Date.now() - count
  const ids = []
  let last
  for (let from = 0; from < count; from += chunk) {
    const users = Array.from({ length: Math.min(chunk, count - from) }, (_, n) =>
      newResource(directory, 'user', user(from + n), new Date(base + from + n).toISOString()),
    )
    await database.resources(users)
    for (const { id } of users) ids.push(id)
    last = users.at(-1)
  }
  const raw = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], displayName: 'Everybody' }
  const group = newResource(directory, 'group', raw, new Date().toISOString())
  await database.resources([group])
  await database.memberships(group.id, ids.slice(0, members))
  await database.close()
  return { groupId: group.id, outside: ids.slice(members), last }
}

/** One transaction without a flush. Terms are inserted last and sorted, the fastest way to build an index. */
function intoSqlite(dataDir) {
  const db = new Database(join(dataDir, 'directory.db'))
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN')
  const names = 'id, directory_id, type, tenant, product, created, modified, label, raw, terms'
  const insert = db.prepare(`INSERT INTO resources (${names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const join_ = db.prepare('INSERT INTO memberships VALUES (?, ?)')
  let directoryId
  return {
    async resources(resources) {
      for (const resource of resources) {
        const { id, type, tenant, product, created, modified, label, raw } = resource
        directoryId = resource.directoryId
        const terms = JSON.stringify(termsOf(resource))
        insert.run([
          id,
          directoryId,
          type,
          tenant,
          product,
          created,
          modified,
          label,
          JSON.stringify(raw),
          terms,
        ])
      }
    },
    async memberships(groupId, userIds) {
      for (const userId of userIds) join_.run([groupId, userId])
    },
    async close() {
      db.prepare(
        `INSERT INTO terms SELECT r.directory_id, r.type, term.value, r.number
         FROM resources AS r, json_each(r.terms) AS term WHERE r.directory_id = ? ORDER BY 2, 3, 4`,
      ).run([directoryId])
      db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    },
  }
}

function intoMongodb(url) {
  const client = new MongoClient(url)
  const collection = name => client.db().collection(name)
  return {
    async resources(resources) {
      const documents = resources.map(resource => {
        const { id: _id, directoryId: directory, raw, ...fields } = resource
        return { _id, version: 0, directory, ...fields, terms: termsOf(resource), raw: JSON.stringify(raw) }
      })
      await collection('directory_resources').insertMany(documents)
    },
    async memberships(group, userIds) {
      const pairs = userIds.map(user => ({ _id: `${group}/${user}/0`, group, user, version: 0 }))
      for (let from = 0; from < pairs.length; from += chunk) {
        await collection('directory_memberships').insertMany(pairs.slice(from, from + chunk))
      }
    },
    close: () => client.close(),
  }
}
